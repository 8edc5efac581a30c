// Package integration has a test of run-tests, the script.
package integration

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestRunTests runs the script with a pool that does nothing and a Go command whose
// tests fail, or fail at first, and checks what it prints at its end, and its exit
// code.
func TestRunTests(t *testing.T) {
	const note = `printf 'conformance plain\n    slow\n' >>"$PODSTARTER_FIRST_FAILURES"`
	tests := map[string]struct {
		goCommand string // for each call of it
		args      []string
		code      int
		end       string
	}{
		"all pass":            {":", nil, 0, "No case was tried again.\n"},
		"one at second try":   {`case "$*" in *conformance*-case*) ;; *conformance*) ` + note + ` ;; esac`, nil, 0, "Failed at first, and passed when tried again:\nconformance plain\n    slow\n"},
		"in the second lane":  {`case "$*" in *conformance*-case*) [ -e "$0.done" ] || { : >"$0.done"; ` + note + `; } ;; esac`, nil, 0, "Failed at first, and passed when tried again:\nconformance plain\n    slow\n"},
		"one fails":           {`case "$*" in *podfailures*) exit 1 ;; esac`, nil, 1, "No case was tried again.\n"},
		"both":                {`case "$*" in *podfailures*) ` + note + `; exit 1 ;; esac`, nil, 1, "Failed at first, and passed when tried again:\nconformance plain\n    slow\n"},
		"some tests":          {":", []string{"-run", "TestVacate"}, 0, "No case was tried again.\n"},
		"some tests, failing": {"exit 1", []string{"-run", "TestVacate"}, 1, "No case was tried again.\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			script, err := os.ReadFile("run-tests")
			if err != nil {
				t.Fatal(err)
			}
			for path, text := range map[string]string{
				"integration/run-tests":       string(script),
				"integration/.state/bin/pool": "#!/bin/sh\n",
				"bin/go":                      "#!/bin/sh\n" + tt.goCommand + "\n",
			} {
				path = filepath.Join(root, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			run := exec.CommandContext(t.Context(), filepath.Join(root, "integration", "run-tests"), tt.args...)
			run.Env = append(os.Environ(), "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"))
			said, err := run.CombinedOutput()
			code := 0
			if exit, ok := errors.AsType[*exec.ExitError](err); ok {
				code = exit.ExitCode()
			} else if err != nil {
				t.Fatal(err)
			}
			if code != tt.code || !strings.HasSuffix(string(said), tt.end) {
				t.Errorf("exit code %d, want %d; want this end:\n%s\ngot:\n%s", code, tt.code, tt.end, said)
			}
			if strings.Contains(string(said), "failed: ") != (tt.code != 0) {
				t.Errorf("want the names of what failed, and no others:\n%s", said)
			}
		})
	}
}
