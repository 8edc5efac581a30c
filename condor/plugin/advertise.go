package plugin

import (
	"slices"
	"strings"

	"podstarter/classads"
)

// maxAttribute bounds a line of what a plugin publishes; a startd reads 1024 bytes.
const maxAttribute = 900

// Publish puts into the slot's ad what jobs match by: the methods, those that are out of
// order, and what plugins want to be known of themselves and of their proxies
// (starter_v61_main.cpp:printClassAd). No attribute that is there already is changed;
// the names of those that could not be published are returned.
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
