package agent

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCoveredPlaces(t *testing.T) {
	const before, after = "36 35 98:0 / ", " rw,noatime shared:2 - tmpfs x rw\n"
	for name, tt := range map[string]struct {
		list string
		want []string
	}{
		"none":           {list: before + "/" + after + before + "/proc" + after + before + "/process" + after},
		"some":           {list: before + "/proc/sys" + after + before + "/proc/sys/fs/binfmt_misc" + after, want: []string{"/proc/sys", "/proc/sys/fs/binfmt_misc"}},
		"twice":          {list: strings.Repeat(before+"/proc/sys"+after, 2), want: []string{"/proc/sys"}},
		"odd characters": {list: before + `/proc/a\040b\134c\012\0` + after, want: []string{"/proc/a b\\c\n\\0"}},
		"short lines":    {list: "1 2 3\n\n" + before},
	} {
		got, err := coveredPlaces(strings.NewReader(tt.list))
		if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	for name, list := range map[string]string{"a long line": before + "/proc/" + strings.Repeat("x", 1<<17) + after, "too many": strings.Repeat(before+"/x"+after, maxMountinfo/40)} {
		if _, err := coveredPlaces(strings.NewReader(list)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := ownProc(); !errors.Is(err, errNoProcesses) {
		t.Errorf("in the namespace of others: %v", err)
	}
}

func FuzzCoveredPlaces(f *testing.F) {
	f.Add(`36 35 98:0 / /proc/a\040b rw - tmpfs x rw`)
	f.Fuzz(func(t *testing.T, list string) {
		places, _ := coveredPlaces(strings.NewReader(list))
		for _, p := range places {
			if !strings.HasPrefix(p, "/proc/") {
				t.Errorf("%q", p)
			}
		}
	})
}
