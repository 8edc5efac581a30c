package plugin

import (
	"maps"
	"slices"
	"strings"

	"podstarter/classads"
)

// attrData is what a job tells all plugins besides URLs; "<method>_PluginData" is
// for one method.
const attrData = "PluginData"

// blank fills a report file beforehand, so that a full disk does not keep a plugin
// from reporting (sic: 1204).
var blank = strings.Repeat(" ", 16*1204/64*64)

// schemes are the methods of files, sorted.
func schemes(files []File) []string {
	set := map[string]bool{}
	for _, f := range files {
		if m := Method(f.URL); m != "" {
			set[m] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// input returns the input for a plugin from protocol 2 on: an ad for each file, one
// after the other, and the job's data for plugins. By protocol 2 the data are in
// each file's ad (if plain is set), by 4 in ads of their own, otherwise nowhere
// (InvokeMultipleFileTransferPlugin).
func (p *Plugin) input(job *classads.Ad, files []File, plain bool) []byte {
	var out []byte
	data := classads.NewAd()
	copyTo := func(to *classads.Ad, name string) bool {
		e, ok := job.Lookup(name)
		if ok {
			to.Insert(name, e)
		}
		return ok
	}
	switch {
	case p.Protocol == 4:
		if copyTo(data, attrData) {
			out = append(out, data.FormatNew()...)
		}
		for _, method := range schemes(files) {
			ad := classads.NewAd()
			ad.SetString("Protocol", method)
			if copyTo(ad, method+"_"+attrData) {
				out = append(out, ad.FormatNew()...)
			}
		}
		data = classads.NewAd()
	case p.Protocol == 2 && plain:
		copyTo(data, attrData)
		for _, method := range schemes(files) {
			copyTo(data, method+"_"+attrData)
		}
	}
	for _, f := range files {
		ad := data.Clone()
		ad.SetString("Url", f.URL)
		ad.SetString("LocalFileName", f.Path)
		out = append(out, ad.FormatNew()...)
	}
	return out
}
