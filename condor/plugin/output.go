package plugin

import (
	"bytes"
	"strings"

	"podstarter/classads"
)

// Bounds of what a plugin may report. A report of a failure, with what went wrong
// at each server, is a few thousand bytes.
const (
	maxReportText  = 64 << 10 // of one report
	maxReportNodes = 4096
	leastOutput    = 1 << 20 // of a report file, and so much more for each file:
	outputPerFile  = 8 << 10
	mostOutput     = 24 << 20
	// bytesPerNode is how long a report is at least for each node of its
	// expressions, beside the nodes of one: a node takes some 50 bytes of memory,
	// and a list of short numbers has one for every two bytes of text.
	bytesPerNode = 16
)

// outputLimit is how much of a report file is read, in bytes.
func outputLimit(files int) int64 {
	return min(leastOutput+outputPerFile*int64(files), mostOutput)
}

// ParseReports reads a plugin's report file: ads in the new syntax, one behind the
// other. As in stock it ends at the first that is none. At most so many are taken.
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
		// An invocation's ad is told from a report's by this.
		ad.Delete("TransferClass")
		ads = append(ads, ad)
	}
	return ads
}

// ParseLines reads lines NAME = VALUE, which is what plugins say of themselves and,
// by protocol 1, of a transfer. Lines that are none are counted.
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
