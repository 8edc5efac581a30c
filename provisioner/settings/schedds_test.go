package settings

import (
	"strings"
	"testing"
)

// Without a number, some schedds of other pools are asked; if schedds are named, none
// but those.
func TestFlocking(t *testing.T) {
	for text, want := range map[string]int{
		"":                              normalFlocking,
		"flocking: {schedds: 3}\n":      3,
		"flocking: {disabled: true}\n":  0,
		"schedds: [ap1]\n":              0,
		"flocking: {disabled: false}\n": normalFlocking,
	} {
		s, err := parse([]byte("name: site\n" + text))
		if err != nil || s.Flocking != want {
			t.Errorf("%q: %d schedds of other pools are asked, want %d: %v", text, s.Flocking, want, err)
		}
	}
}

// What becomes an argument of a tool must be none of its options.
func TestMistakesOfSchedds(t *testing.T) {
	for text, want := range map[string]string{
		"schedds: [-debug]":                           `schedds has "-debug"`,
		"schedds: [{name: ap, pool: -debug}]":         `schedds has "-debug"`,
		"schedds: [{pool: cm}]":                       "schedds has an entry without a name",
		`schedds: [""]`:                               "schedds has an entry without a name",
		"schedds: [{name: ap, collector: cm}]":        "write a name, or {name: NAME, pool: COLLECTOR}",
		"schedds: [7]":                                "write a name, or {name: NAME, pool: COLLECTOR}",
		"schedds: [a b]":                              `schedds has "a b"`,
		"flocking: {schedds: -1}":                     "flocking.schedds is -1",
		"flocking: {schedds: 100000}":                 "flocking.schedds is 100000",
		"schedds: [ap]\nflocking: {schedds: 3}":       "flocking is set beside schedds",
		"mode: offline-ads\nflocking: {schedds: 3}":   "there is no flocking",
		"flocking: true":                              "cannot unmarshal bool",
		"schedds: [" + strings.Repeat("x", 300) + "]": "it is no name",
	} {
		if _, err := parse([]byte("name: site\n" + text + "\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: the error is %v, want one with %q", text, err, want)
		}
	}
}
