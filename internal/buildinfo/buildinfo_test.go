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

// TestPrograms builds both programs as the Makefile does: they say the version
// that the linker was given.
func TestPrograms(t *testing.T) {
	const version = "v7.8.9-test"
	for program, folder := range map[string]string{"condor_pod_starter": "starter", "condor_pod_wrapper": "wrapper"} {
		path := filepath.Join(t.TempDir(), program)
		build := exec.CommandContext(t.Context(), "go", "build", "-ldflags", "-X podstarter/internal/buildinfo.version="+version, "-o", path, "./"+folder)
		build.Dir = "../.."
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("building %s: %v\n%s", program, err, out)
		}
		for _, option := range []string{"-version", "-v"} {
			if program == "condor_pod_wrapper" && option == "-v" {
				continue
			}
			run := exec.CommandContext(t.Context(), path, option)
			run.Env = []string{"CONDOR_CONFIG=/nonexistent"}
			out, err := run.Output()
			if err != nil || !strings.Contains(string(out), "$PodStarterVersion: "+version+" ") {
				t.Errorf("%s %s says %q, %v; want version %s", program, option, out, err, version)
			}
		}
		out, err := exec.CommandContext(t.Context(), path, "-help").Output()
		if err != nil || !strings.HasPrefix(string(out), "usage: "+program) {
			t.Errorf("%s -help says %q, %v; want its usage", program, out, err)
		}
	}
}
