package plugin

import (
	"slices"
	"strings"

	"podstarter/classads"
)

// maxAttribute bounds a plugin's line in bytes; a startd reads 1024.
const maxAttribute = 900

// Publish puts into the slot's ad what jobs match by: the methods, those that failed
// their test, and what plugins publish about themselves and their proxies
// (starter_v61_main.cpp:printClassAd). It changes no attribute that exists already, and
// returns the names of those that it could not publish.
func (s *Set) Publish(ad *classads.Ad) (left []string) {
	methods := s.Methods()
	if slices.Contains(methods, "https") {
		methods = append(methods, "s3", "gs") // by URLs that the access point signs
	}
	own := classads.NewAd()
	if len(methods) > 0 {
		own.SetString("HasFileTransferPluginMethods", strings.Join(methods, ","))
	}
	failed := map[string]bool{}
	extra := classads.NewAd()
	for _, p := range s.plugins {
		for _, m := range p.Failed {
			failed[m] = true
		}
		p.attributes(extra)
	}
	if len(failed) > 0 {
		var list []string
		for m := range failed {
			list = append(list, m)
		}
		slices.Sort(list)
		own.SetString("OfflineFileTransferPluginMethods", strings.Join(list, ","))
	}
	for _, p := range s.plugins {
		for _, m := range p.methods {
			if !attributePart(m) || p.Ad == nil {
				continue
			}
			if proxy, err := p.Ad.GetString(m + "_proxy"); err == nil {
				extra.SetString(m+"_proxy", proxy)
			}
		}
	}
	for name, e := range own.All() {
		ad.Insert(name, e)
	}
	for name, e := range extra.All() {
		line := classads.AppendOldLine(nil, name, e)
		if ad.Has(name) || !attributePart(name) || len(line) > maxAttribute || strings.ContainsAny(string(line), "\n\r\x00") {
			left = append(left, name)
			continue
		}
		ad.Insert(name, e)
	}
	return left
}
