package filetransfer

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/sandbox/jobfiles"
)

func TestSpooledNames(t *testing.T) {
	u := &upload{session: &session{job: jobfiles.Files{Stdout: "_condor_stdout", Stderr: "dir/err"}}}
	for _, name := range []string{"b", "a", "dir", "dir/inner", "_condor_stdout", "err", "a"} {
		u.spooled(name)
	}
	if diff := cmp.Diff([]string{"b", "a", "dir"}, u.stats.spooled); diff != "" || u.unnamed {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for i := range maxSpooled - 3 {
		u.spooled(strconv.Itoa(i))
	}
	if len(u.stats.spooled) != maxSpooled || u.unnamed {
		t.Errorf("%d names, %v", len(u.stats.spooled), u.unnamed)
	}
	for _, name := range []string{"one too many", "another"} {
		u.spooled(name)
		if u.stats.spooled != nil || !u.unnamed {
			t.Errorf("%d names, %v", len(u.stats.spooled), u.unnamed)
		}
	}
}

func TestSpooledNamesThatNoListHolds(t *testing.T) {
	for _, tc := range []struct {
		name    string
		changed bool // the job names no output
		want    []string
		unnamed bool
	}{
		{"a b", true, []string{"plain", "a b", "last"}, false},
		{"a,b", true, nil, true},
		{" a", true, nil, true},
		{"a\t", true, nil, true},
		{"a\nb", true, nil, true},
		{"a\rb", true, nil, true},
		{"a,b", false, []string{"plain", "a,b", "last"}, false},
		{" a", false, []string{"plain", " a", "last"}, false},
		{"a\nb", false, []string{"plain", "last"}, false},
		{"a\rb", false, []string{"plain", "last"}, false},
	} {
		u := &upload{session: &session{}}
		u.plan.Pick.Changed = tc.changed
		for _, name := range []string{"plain", tc.name, "last"} {
			u.spooled(name)
		}
		if diff := cmp.Diff(tc.want, u.stats.spooled); diff != "" || u.unnamed != tc.unnamed {
			t.Errorf("%q: unnamed %t, want %t (-want +got):\n%s", tc.name, u.unnamed, tc.unnamed, diff)
		}
	}
}
