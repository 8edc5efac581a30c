package buildinfo

import (
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	commit := []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "false"}}
	changed := []debug.BuildSetting{{Key: "vcs.modified", Value: "true"}, {Key: "vcs.revision", Value: "0123456789abcdef"}}
	tests := map[string]struct {
		linked string
		info   *debug.BuildInfo
		want   string
	}{
		"the linker's":                 {"v1.2.3", &debug.BuildInfo{Main: debug.Module{Version: "v9.9.9"}}, "v1.2.3"},
		"the linker's, without blanks": {" v1 2\n", nil, "v1-2"},
		"the module's":                 {"", &debug.BuildInfo{Main: debug.Module{Version: "v1.0.0"}}, "v1.0.0"},
		"the commit":                   {"", &debug.BuildInfo{Main: debug.Module{Version: "(devel)"}, Settings: commit}, "devel-0123456789ab"},
		"the commit and changes":       {"", &debug.BuildInfo{Settings: changed}, "devel-0123456789ab-dirty"},
		"nothing noted":                {"", &debug.BuildInfo{}, "devel"},
		"no information":               {"", nil, "devel"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got := of(tt.linked, tt.info); got != tt.want {
				t.Errorf("of(%q, %+v) = %q, want %q", tt.linked, tt.info, got, tt.want)
			}
		})
	}
}

// TestLinker builds the smaller program as the Makefile does: it prints the
// version that the linker was given.
func TestLinker(t *testing.T) {
	const version = "v7.8.9-test"
	path := filepath.Join(t.TempDir(), "condor_pod_wrapper")
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-X podstarter/internal/buildinfo.version="+version, "-o", path, "./wrapper")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the wrapper: %v\n%s", err, out)
	}
	for option, want := range map[string]string{"-version": "$PodStarterVersion: " + version + " ", "-help": "usage: condor_pod_wrapper -control DIR "} {
		out, err := exec.CommandContext(t.Context(), path, option).Output()
		if err != nil || !strings.HasPrefix(string(out), want) {
			t.Errorf("%s says %q, %v; want %q", option, out, err, want)
		}
	}
}
