package main

// Mistakes about what a site can ask of all its starters: kept sandboxes, slow networks, maps for ClassAds.
var siteKnobsMutants = []mutant{
	{
		Name:  "a sandbox that is kept is open to the next job",
		File:  "sandbox/moveto.go",
		Old:   `finishDir(s.top, name, s.condor, 0o700)`,
		New:   `finishDir(s.top, name, s.condor, 0o755)`,
		Tests: []tests{{"sandbox", "TestMoveTo"}},
	},
	{
		Name:  "a sandbox is moved by a directory that anybody can change",
		File:  "sandbox/moveto.go",
		Old:   `st.Mode&0o022 != 0 &&`,
		New:   `st.Mode&0o022 != 0 && false &&`,
		Tests: []tests{{"sandbox", "TestMoveTo"}},
	},
	{
		Name:  "a sandbox that cannot be moved stays",
		File:  "starter/discard/discard.go",
		Old:   "\t\tif err == nil {\n\t\t\treturn\n",
		New:   "\t\tif true {\n\t\t\treturn\n",
		Tests: []tests{{"starter/discard", "TestDiscard"}},
	},
	{
		Name:  "the multiplier counts for clients only",
		File:  "internal/cedar/server.go",
		Old:   `st.SetMultiplier(s.Slow)`,
		New:   `st.SetMultiplier(0 * s.Slow)`,
		Tests: []tests{{"internal/cedar", "TestSlowNetwork"}},
	},
	{
		Name:  "the last line of a map counts",
		File:  "classads/usermap/read.go",
		Old:   `!exists {`,
		New:   `!exists || true {`,
		Tests: []tests{{"classads/usermap", "TestLookup"}},
	},
	{
		Name:  "a search in a map is free",
		File:  "classads/usermap/usermap.go",
		Old:   `*steps -= 1 + n/stepBytes`,
		New:   `*steps -= 0 * n / stepBytes`,
		Tests: []tests{{"classads/usermap", "TestBounds"}},
	},
	{
		Name:  "a strict evaluation looks into the other ad",
		File:  "classads/attrref.go",
		Old:   `&& !ev.env.Site.Strict {`,
		New:   `{`,
		Tests: []tests{{"classads", "TestStrict"}},
	},
	{
		Name:  "what the site adds to the language is lost in copies",
		File:  "classads/ad.go",
		Old:   `, site: a.site}`,
		New:   `}`,
		Tests: []tests{{"classads", "TestSite"}},
	},
	{
		Name:  "a site that demands encryption gets jobs",
		File:  "starter/settings/settings.go",
		Old:   "\tr.refuse()\n",
		New:   "\t_ = r.refuse\n",
		Tests: []tests{{"starter/settings", "TestRefusedKnobs"}},
	},
}
