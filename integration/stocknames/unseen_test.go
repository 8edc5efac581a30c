package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/stocknames/cppnames"
)

// TestUnseen: a knob of the table that the scanner did not see read is named.
func TestUnseen(t *testing.T) {
	sources := []cppnames.Source{{Name: "a.cpp", Text: "#define OTHER \"TEA_LOST\"\n" + `
		void f() { param("TEA_KIND"); strange("tea_lost"); strange("TEA_BLUE_POT"); strange("TEA"); strange("NOT_IN_TABLE"); strange("JOB_ROUTER"); }`}}
	names := []cppnames.Name{{Kind: cppnames.Knob, Text: "TEA_KIND"}, {Kind: cppnames.Knob, Text: "TEA_*_POT"}, {Kind: cppnames.Knob, Text: "*_*"}, {Kind: cppnames.Attribute, Text: "TEA_LOST"}}
	got := unseen(sources, "[TEA_KIND]\ndefault=green\n\n[TEA_LOST]\n[TEA_BLUE_POT]\n[TEA]\n[JOB_ROUTER]\n", names)
	if diff := cmp.Diff([]string{"TEA_LOST (a.cpp)", "tea_lost (a.cpp)"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
