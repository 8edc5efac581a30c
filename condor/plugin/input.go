package plugin

import (
	"maps"
	"slices"
	"strings"

	"podstarter/classads"
)

// attrData is what a job tells plugins besides URLs; "<method>_PluginData" those of
// one method.
const attrData = "PluginData"

// blank is what a report file is filled with beforehand, so that a full disk does
// not keep a plugin from reporting (sic: 1204).
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

// input is what a plugin from protocol 2 on is told: an ad for each file, one
// behind the other, and what the job says to plugins. By protocol 2 that is in
// each file's ad (plain asks for it), by 4 in ads of its own, by others nowhere
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
