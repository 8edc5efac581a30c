//go:build pool

package e2e

import (
	"errors"
	"io"
	"strings"
	"testing"

	"podstarter/classads"
)

// TestAdsAsToolsPrintThem: package classads reads all ads of the pool's daemons and
// of jobs, as the tools print them in each of their formats. What it makes of those
// that the tools print with -long is equal to each of the others.
func TestAdsAsToolsPrintThem(t *testing.T) {
	ended := submit(t, job(`out='""quoted""\ and\t<&>'`, "max_retries = 2", "+Nested = [ a = 1; b = { a, \"x\" } ]", "+Moment = absTime(\"2024-02-29T12:34:56+01:00\")"))[0]
	ending(t, ended)
	ctx := soon(t, 2*patience)
	for tool(t, "condor_history", ended.ID(), "-af", "ClusterId") == "" {
		if ctx.Err() != nil {
			t.Fatal("the job does not appear in the history")
		}
	}
	for name, argv := range map[string][]string{
		"slot":       {"condor_status", "-limit", "1"},
		"startd":     {"condor_status", "-startd", "-limit", "2"},
		"schedd":     {"condor_status", "-schedd"},
		"master":     {"condor_status", "-master"},
		"negotiator": {"condor_status", "-negotiator"},
		"job":        {"condor_history", ended.ID()},
	} {
		t.Run(name, func(t *testing.T) {
			prints := func(options ...string) string { return tool(t, append(argv, options...)...) }
			var long, json, xml, modern string
			for same := false; !same; { // until no daemon has sent a newer ad meanwhile
				if ctx.Err() != nil {
					t.Fatal("the ad never stays the same for five calls of the tool")
				}
				long = prints("-long")
				json, xml = prints("-json"), prints("-xml")
				if argv[0] == "condor_status" { // condor_history has no such option
					modern = prints("-long:new")
				}
				same = prints("-long") == long
			}
			ads := readAds(t, long, classads.FormatLong)
			for _, tt := range []struct {
				format classads.Format
				text   string
				print  func(*classads.Ad) string
			}{
				{classads.FormatLong, long, (*classads.Ad).FormatOld},
				{classads.FormatJSON, json, (*classads.Ad).FormatJSON},
				{classads.FormatXML, xml, (*classads.Ad).FormatXML},
				{classads.FormatNew, modern, (*classads.Ad).FormatNew},
			} {
				if tt.text == "" {
					continue
				}
				again := readAds(t, tt.text, tt.format)
				if len(again) != len(ads) {
					t.Fatalf("%d ads in format %d, %d with -long", len(again), tt.format, len(ads))
				}
				for i, ad := range ads {
					if want := tt.print(ad); !strings.Contains(tt.text, want) {
						t.Errorf("format %d: the tool does not print what we do:\n%s\nbut\n%s", tt.format, want, tt.text)
					}
					if got := again[i].FormatOld(); got != ad.FormatOld() {
						t.Errorf("format %d, read:\n%s\nwith -long:\n%s", tt.format, got, ad.FormatOld())
					}
				}
			}
		})
	}
}

// tool is what a tool of the submit side prints.
func tool(t *testing.T, argv ...string) string {
	t.Helper()
	out, err := pool.AP(t.Context(), argv...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// readAds reads what a tool printed, at least one ad.
func readAds(t *testing.T, text string, format classads.Format) (ads []*classads.Ad) {
	t.Helper()
	for r := classads.NewReader(strings.NewReader(text), format, classads.Parser{}); ; {
		ad, err := r.Read()
		switch {
		case errors.Is(err, io.EOF) && len(ads) > 0:
			return ads
		case err != nil:
			t.Fatalf("format %d: %v", format, err)
		}
		ads = append(ads, ad)
	}
}
