package apptainer_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/localexec/apptainer"
)

// TestProbe: what is advertised follows from what ran.
func TestProbe(t *testing.T) {
	own, err := os.Readlink("/proc/self/ns/user")
	if err != nil {
		t.Fatal(err)
	}
	own = strings.Trim(own, "user:[]")
	no, yes := false, true
	for name, tt := range map[string]struct {
		version string
		missing bool // the program
		runs    func(line string) (int, string)
		pid     *bool
		want    apptainer.Report
		err     string
	}{
		"all": {version: "apptainer version 1.4.5\nmore", runs: func(line string) (int, string) {
			if strings.HasSuffix(line, "get_user_ns") {
				return 37, "123\n"
			}
			return 37, ""
		}, want: apptainer.Report{Sandbox: true, SIF: true, PIDNamespaces: true, UserNamespaces: &yes, Runtime: apptainer.Runtime{Version: "apptainer version 1.4.5"}}},
		"the same namespace": {version: "singularity-ce 4", runs: func(line string) (int, string) {
			if strings.HasSuffix(line, "get_user_ns") {
				return 37, own + "\n"
			}
			return 37, ""
		}, want: apptainer.Report{Sandbox: true, SIF: true, PIDNamespaces: true, UserNamespaces: &no, Runtime: apptainer.Runtime{Version: "singularity-ce 4"}}},
		"no PID namespaces": {version: "v", runs: func(line string) (int, string) {
			if strings.Contains(line, " -C ") || strings.HasSuffix(line, "get_user_ns") {
				return 255, "FATAL: no"
			}
			return 37, ""
		}, want: apptainer.Report{Sandbox: true, SIF: true, Runtime: apptainer.Runtime{Version: "v"}}},
		"they are not to be tried": {version: "v", pid: &yes, runs: func(line string) (int, string) {
			if strings.Contains(line, " -C ") {
				return 255, "FATAL: no"
			}
			return 37, ""
		}, want: apptainer.Report{Trouble: "FATAL: no", Runtime: apptainer.Runtime{Version: "v"}}},
		"only directories": {version: "v", runs: func(line string) (int, string) {
			if strings.Contains(line, ".sif") || strings.HasSuffix(line, "get_user_ns") {
				return 255, "FATAL: no squashfuse"
			}
			return 37, ""
		}, want: apptainer.Report{Sandbox: true, PIDNamespaces: true, Runtime: apptainer.Runtime{Version: "v"}}},
		"nothing": {version: "v", runs: func(string) (int, string) {
			return 255, "INFO: x\n\x1b[91mERROR  : Failed to create user namespace\n\x1b[0m"
		}, want: apptainer.Report{Trouble: "ERROR  : Failed to create user namespace", Runtime: apptainer.Runtime{Version: "v"}}},
		"no program": {missing: true, err: "ask /usr/bin/apptainer for its version: no such file"},
		"silence":    {version: "", err: "it says nothing"},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(_ context.Context, argv []string) (int, []byte, error) {
				switch {
				case tt.missing:
					return 0, nil, errors.New("no such file")
				case argv[1] == "--version":
					return 0, []byte(tt.version), nil
				}
				status, output := tt.runs(strings.Join(argv, " "))
				return status, []byte(output), nil
			}
			got, err := site().Probe(t.Context(), run, apptainer.Images{Sandbox: "/sandbox", SIF: "/x.sif", Timeout: time.Minute, PIDNamespaces: tt.pid})
			if (err != nil) != (tt.err != "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); err == nil && diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestLastWords: of a runtime's output the line that matters is quoted, and no more of it than is of use.
func TestLastWords(t *testing.T) {
	for name, tt := range map[string]struct{ output, want string }{
		"nothing":         {"", ""},
		"a warning first": {"WARNING: x\n\x1b[31mFATAL:  \x1b[0m y\n", "FATAL:   y"},
		"a word after":    {"FATAL: y\nbye\n", "FATAL: y"},
		"none is worse":   {"a\nb\n\n", "b"},
		"bytes":           {"FATAL: \xff\x00\n", "FATAL: ? "},
		"long":            {strings.Repeat("x", 1000), strings.Repeat("x", 500) + "..."},
	} {
		if got := apptainer.LastWords([]byte(tt.output)); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestByMachine: names are looked up where the job starts.
func TestByMachine(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(dir+"/tree", 0o755); err != nil {
		t.Fatal(err)
	}
	d := apptainer.ByMachine{Dir: dir}
	if !d.IsDir("tree") || !d.Exists(dir+"/tree") || d.Exists("none") || d.IsDir("/etc/passwd") {
		t.Error("the directory is not seen")
	}
}
