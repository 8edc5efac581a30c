package payload

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMounts: what may be mounted, and that it arrives as it was sent.
func TestMounts(t *testing.T) {
	many := make([]string, MaxMounts+1)
	for i := range many {
		many[i] = "/d" + strings.Repeat("x", i)
	}
	for name, tt := range map[string]struct {
		mounts *Mounts
		err    string
	}{
		"none":                {},
		"directories":         {mounts: &Mounts{Sandbox: "/execute/dir_1", Dirs: []string{"/tmp", "/var/tmp", "/a\xff"}}},
		"shared memory":       {mounts: &Mounts{Sandbox: "/execute/dir_1", SharedMemory: true}},
		"many":                {mounts: &Mounts{Sandbox: "/s", Dirs: many[:MaxMounts]}},
		"too many":            {mounts: &Mounts{Sandbox: "/s", Dirs: many}, err: "at most 64"},
		"nothing":             {mounts: &Mounts{Sandbox: "/s"}, err: "nothing"},
		"no sandbox":          {mounts: &Mounts{Dirs: []string{"/tmp"}}, err: "absolute"},
		"the root":            {mounts: &Mounts{Sandbox: "/s", Dirs: []string{"/"}}, err: "absolute"},
		"relative":            {mounts: &Mounts{Sandbox: "/s", Dirs: []string{"tmp"}}, err: "absolute"},
		"up":                  {mounts: &Mounts{Sandbox: "/s", Dirs: []string{"/a/../tmp"}}, err: "absolute"},
		"above the sandbox":   {mounts: &Mounts{Sandbox: "/tmp/s", Dirs: []string{"/tmp"}}, err: "neither above nor below"},
		"in the sandbox":      {mounts: &Mounts{Sandbox: "/s", Dirs: []string{"/s/tmp"}}, err: "neither above nor below"},
		"below another one":   {mounts: &Mounts{Sandbox: "/s", Dirs: []string{"/a", "/a/b"}}, err: "both"},
		"above another one":   {mounts: &Mounts{Sandbox: "/s", Dirs: []string{"/a/b", "/a"}}, err: "both"},
		"twice":               {mounts: &Mounts{Sandbox: "/s", Dirs: []string{"/a", "/a"}}, err: "both"},
		"begins like another": {mounts: &Mounts{Sandbox: "/s", Dirs: []string{"/a", "/ab", "/sb"}}},
		"a NUL byte":          {mounts: &Mounts{Sandbox: "/s", Dirs: []string{"/a\x00"}}, err: "NUL"},
		"long":                {mounts: &Mounts{Sandbox: "/s", Dirs: []string{"/" + strings.Repeat("x", maxPath)}}, err: "bytes or more"},
	} {
		t.Run(name, func(t *testing.T) {
			s := Spec{Activation: "a", UID: 1, GID: 1, Path: "/bin/true", Dir: "/", Mounts: tt.mounts}
			err := s.Validate()
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatalf("%v, want %q", err, tt.err)
			}
			e := Exec{Spec: s}
			if err := e.Validate(); (err != nil) != (tt.mounts != nil) {
				t.Errorf("beside a payload: %v", err)
			}
			data, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			var got Spec
			if err := json.Unmarshal(data, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(s.Mounts, got.Mounts); diff != "" {
				t.Errorf("(-sent +arrived):\n%s", diff)
			}
		})
	}
}
