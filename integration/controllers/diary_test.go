package controllers

import (
	"strings"
	"testing"
)

func TestOnce(t *testing.T) {
	for _, tc := range []struct{ name, diary, wrong string }{
		{"well", "begin 1.00\ntold 2.00\nbegin 3.00\nend 4.00\n", ""},
		{"at once", "begin 1.00\ntold 3.50\nbegin 3.00\nend 4.00\n", "before"},
		{"not told", "begin 1.00\nbegin 3.00\nend 4.00\n", "it went through"},
		{"never again", "begin 1.00\ntold 2.00\n", "it went through"},
		{"lost", "begin 3.00\nend 4.00\n", "it went through"},
		{"three runs", "begin 1.00\ntold 2.00\nbegin 3.00\ntold 4.00\nbegin 5.00\nend 6.00\n", "it went through"},
		{"not a diary", "begin\n", "reading"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := once(tc.diary)
			if tc.wrong == "" && err != nil || tc.wrong != "" && (err == nil || !strings.Contains(err.Error(), tc.wrong)) {
				t.Errorf("error %v, want one with %q", err, tc.wrong)
			}
		})
	}
}
