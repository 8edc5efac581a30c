package plugin

import (
	"bytes"
	"strings"

	"podstarter/classads"
)

// Bounds of a plugin's report. A report of a failure, with the errors of each
// server, has a few thousand bytes.
const (
	maxReportText  = 64 << 10 // of one report
	maxReportNodes = 4096
	leastOutput    = 1 << 20 // of a report file, plus this for each file:
	outputPerFile  = 8 << 10
	mostOutput     = 24 << 20
	// bytesPerNode is the least length of a report for each node of its expressions
	// that is not free: a node takes some 50 bytes of memory, and a list of short
	// numbers has one for every two bytes of text.
	bytesPerNode = 16
)

// outputLimit returns how much of a report file is read, in bytes.
func outputLimit(files int) int64 {
	return min(leastOutput+outputPerFile*int64(files), mostOutput)
}

// ParseReports reads a plugin's report file: ads in the new syntax, one after the
// other. As in stock it stops at the first invalid one, or after so many.
func ParseReports(text []byte, most int) []*classads.Ad {
	left := maxReportNodes + len(text)/bytesPerNode
	in := classads.NewReader(bytes.NewReader(text), classads.FormatNew,
		classads.Parser{MaxText: maxReportText, MaxNodes: maxReportNodes, Left: &left})
	var ads []*classads.Ad
	for len(ads) < most {
		ad, err := in.Read()
		if err != nil || ad == nil || ad.Len() == 0 {
			break
		}
		// This attribute marks the invocation's ad; a report must not have it.
		ad.Delete("TransferClass")
		ads = append(ads, ad)
	}
	return ads
}

// ParseLines reads lines NAME = VALUE, in which plugins describe themselves and, by
// protocol 1, a transfer. It counts the other lines.
func ParseLines(text []byte) (ad *classads.Ad, bad int) {
	const most = 1000 // attributes
	ad = classads.NewAd()
	parser := classads.Parser{MaxText: maxReportText, MaxNodes: maxReportNodes}
	for line := range strings.FieldsFuncSeq(string(text), func(r rune) bool { return r == '\n' || r == '\r' }) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, err := parser.OldLine(line)
		if err != nil || ad.Len() >= most {
			bad++
			continue
		}
		ad.Insert(name, value)
	}
	return ad, bad
}
