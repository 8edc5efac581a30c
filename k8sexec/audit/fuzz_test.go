package audit

import (
	"strings"
	"testing"
)

// FuzzParseRights parses status files of processes.
func FuzzParseRights(f *testing.F) {
	f.Add("Name:\tpause\nCapPrm:\t000001ffffffffff\nCapBnd:\t000001ffffffffff\nSeccomp:\t2\n")
	f.Add("CapPrm:\nSeccomp:\t-\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parseRights(strings.NewReader(text))
		if err == nil && p != (processRights{}) && !strings.Contains(text, "Cap") && !strings.Contains(text, "Seccomp") {
			t.Errorf("%q has %+v", text, p)
		}
	})
}

// FuzzClaims parses tokens.
func FuzzClaims(f *testing.F) {
	f.Add("x.eyJleHAiOjF9.x")
	f.Fuzz(func(_ *testing.T, token string) { readClaims(token) })
}
