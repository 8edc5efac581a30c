package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// asProgram makes this test's binary the program that the script starts.
const asProgram = "RUN_TESTS_BINARY"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A checkout is a directory with the script, a pool program and a Go command that note
// how they were called, and do what a test says.
type checkout struct {
	root   string
	script *exec.Cmd
	said   strings.Builder
}

// newCheckout makes one. The two programs are text for a shell, which finds "second " in
// $lane if the second lane calls it, else nothing.
func newCheckout(t *testing.T, pool, goCommand string, args ...string) *checkout {
	t.Helper()
	c := &checkout{root: t.TempDir()}
	script, err := os.ReadFile("../run-tests")
	if err != nil {
		t.Fatal(err)
	}
	note := func(name string) string {
		return fmt.Sprintf("#!/bin/sh\nlane=${PODSTARTER_STATE:+second }\necho \"${lane}%s $*\" >>%q\n", name, filepath.Join(c.root, "calls"))
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c.write(t, "integration/run-tests", string(script))
	c.write(t, "integration/.state/bin/pool", note("pool")+pool+"\n")
	c.write(t, "bin/go", fmt.Sprintf("#!/bin/sh\n[ \"$3\" != build ] || exec ln -s %q \"integration/$5\"\n", self)+strings.TrimPrefix(note("go"), "#!/bin/sh\n")+goCommand+"\n")
	c.script = exec.CommandContext(t.Context(), filepath.Join(c.root, "integration", "run-tests"), args...)
	c.script.Env = append(os.Environ(), "PATH="+filepath.Join(c.root, "bin")+":"+os.Getenv("PATH"), asProgram+"=1")
	c.script.Stdout, c.script.Stderr = &c.said, &c.said
	return c
}

func (c *checkout) write(t *testing.T, path, text string) {
	t.Helper()
	path = filepath.Join(c.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

// end waits for the script and returns its exit code.
func (c *checkout) end(t *testing.T) int {
	t.Helper()
	err := c.script.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return 0
}

// calls are those of the two programs, one a line, of one lane. Only the first words of
// each are kept.
func (c *checkout) calls(t *testing.T, second bool) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.root, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		line, isSecond := strings.CutPrefix(strings.TrimSpace(line), "second ")
		if isSecond != second {
			continue
		}
		switch f := strings.Fields(line); {
		case f[0] == "pool":
			found = append(found, strings.Join(f[:2], " "))
		case f[1] == "test":
			found = append(found, "classads")
		default:
			found = append(found, strings.TrimPrefix(f[9], "./"))
		}
	}
	return found
}

// failed are the lines that name what failed.
func (c *checkout) failed() []string {
	var lines []string
	for line := range strings.Lines(c.said.String()) {
		if line, ok := strings.CutPrefix(strings.TrimSpace(line), "failed: "); ok {
			lines = append(lines, line)
		}
	}
	return lines
}

// names are those of a lane's steps.
func names(steps []step) string {
	var all []string
	for _, s := range steps {
		all = append(all, s.name)
	}
	return strings.Join(all, "; ")
}

// TestRunTests: the exit code, the last lines and the names of what failed.
func TestRunTests(t *testing.T) {
	const (
		note  = `printf 'conformance plain\n    slow\n' >>"$PODSTARTER_FIRST_FAILURES"`
		none  = "No case was tried again.\n"
		again = "Failed at first, and passed when tried again:\nconformance plain\n    slow\n"
	)
	// Reasons are cut after two lines; a test that passed is none.
	const fails = `cat <<-'END'
	--- FAIL: TestA (1.00s)
	    --- FAIL: TestA/one (0.50s)
	        a_test.go:1: got 2
	            want 3
	            and so on
	    --- PASS: TestA/three (0.50s)
	        a_test.go:3: fine
	    --- FAIL: TestA/two (0.50s)
	        a_test.go:2: late
	FAIL
	END
	exit 1`
	first, second := firstLane("pool"), secondLane("pool")
	tests := map[string]struct {
		pool, goCommand string // for each call of it
		args            []string
		end             string
		failed          []string
	}{
		"all pass":           {end: none},
		"one at second try":  {goCommand: `case "$*" in *conformance*-case*) ;; *conformance*) ` + note + ` ;; esac`, end: again},
		"in the second lane": {goCommand: `case "$*" in *conformance*-case*) [ -e "$0.done" ] || { : >"$0.done"; ` + note + `; } ;; esac`, end: again},
		"one fails":          {goCommand: `case "$*" in *podfailures*) exit 1 ;; esac`, end: none, failed: []string{"second lane: podfailures: exit status 1"}},
		"both": {goCommand: `case "$*" in *podfailures*) ` + note + `; exit 1 ;; esac`, end: again,
			failed: []string{"second lane: podfailures: exit status 1"}},
		"tests that fail": {goCommand: `case "$*" in *podfailures*) ` + fails + ` ;; esac`, end: none,
			failed: []string{"second lane: podfailures: exit status 1\n    --- FAIL: TestA (1.00s)\n        --- FAIL: TestA/one (0.50s)\n            a_test.go:1: got 2\n                want 3\n        --- FAIL: TestA/two (0.50s)\n            a_test.go:2: late"}},
		"killed by a signal": {goCommand: `case "$*" in *chaos*) kill -KILL $$ ;; esac`, end: none,
			failed: []string{"second lane: chaos -v -jobs 150: signal: killed"}},
		"the first pool": {pool: `case "$lane$1" in up) exit 3 ;; esac`, end: none,
			failed: []string{"first lane: " + first[0].name + ": exit status 3", "first lane: it ended early; not run: " + names(first[1:])}},
		"a later pool": {pool: `case "$*" in *--ap-condor*) exit 1 ;; esac`, end: none,
			failed: []string{"second lane: pool up --ap-condor 23.9: exit status 1", "second lane: it ended early; not run: " + names(second[3:])}},
		"a pool is killed": {pool: `case "$lane$*" in "second up"*23.9) kill -TERM $$ ;; esac`, end: none,
			failed: []string{"second lane: pool up --ap-condor 23.9: signal: terminated", "second lane: it ended early; not run: " + names(second[3:])}},
		"second pool stays": {pool: `case "$lane$1" in "second up") mkdir -p "$PODSTARTER_STATE" ;; *down) exit 1 ;; esac`, end: none,
			failed: []string{"second lane: pool down: exit status 1"}},
		"some tests": {args: []string{"-run", "TestVacate"}, end: none},
		"some tests, failing": {goCommand: "exit 1", args: []string{"-run", "TestVacate"}, end: none,
			failed: []string{"first lane: e2e -condor 25.14 -run TestVacate: exit status 1"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCheckout(t, tt.pool, tt.goCommand, tt.args...)
			if err := c.script.Start(); err != nil {
				t.Fatal(err)
			}
			want := 0
			if len(tt.failed) > 0 {
				want = 1
			}
			end := tt.end
			for _, line := range tt.failed {
				end += "failed: " + line + "\n"
			}
			if code := c.end(t); code != want || !strings.HasSuffix(c.said.String(), end) {
				t.Errorf("exit code %d, want %d; want this end:\n%s\ngot:\n%s", code, want, end, &c.said)
			}
		})
	}
}

// TestLaneEndsWithItsPool: nothing is run without a pool, the other lane is run to its
// end, and of the second pool nothing stays.
func TestLaneEndsWithItsPool(t *testing.T) {
	c := newCheckout(t, `
case "$1" in
up) [ -z "$lane" ] || mkdir -p "$PODSTARTER_STATE"; case "$*" in *"--slots 3"*) exit 1 ;; esac ;;
esac`, "")
	if err := c.script.Start(); err != nil {
		t.Fatal(err)
	}
	c.end(t)
	want := []string{"pool up", "daemonfaults", "pool up", "conformance", "pool up", "conformance", "pool up", "e2e", "pool up", "pool down"}
	if diff := cmp.Diff(want, c.calls(t, true)); diff != "" {
		t.Errorf("second lane (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"pool up", "pool ap", "kubeletrules", "conformance", "classads", "pool up", "e2e"}, c.calls(t, false)); diff != "" {
		t.Errorf("first lane (-want +got):\n%s", diff)
	}
	if _, err := os.Lstat(filepath.Join(c.root, "integration", ".state2")); err == nil {
		t.Error("the second pool's state is left")
	}
}

// TestPoolOfKilledRun: the second lane removes the pool of a run that was killed before it
// starts its own; if it cannot, it says so and ends.
func TestPoolOfKilledRun(t *testing.T) {
	const left = "integration/.state2/settings.json"
	c := newCheckout(t, `case "$lane$1" in "second up") [ ! -e "$PODSTARTER_STATE/settings.json" ] ;; esac`, "")
	c.write(t, left, "{}")
	if err := c.script.Start(); err != nil {
		t.Fatal(err)
	}
	if code := c.end(t); code != 0 {
		t.Errorf("exit code %d:\n%s", code, &c.said)
	}
	if calls := c.calls(t, true); calls[0] != "pool down" || calls[1] != "pool up" {
		t.Errorf("the second lane begins with %q", calls[:2])
	}

	c = newCheckout(t, `case "$1" in down) exit 1 ;; esac`, "")
	c.write(t, left, "{}")
	if err := c.script.Start(); err != nil {
		t.Fatal(err)
	}
	c.end(t)
	failed := strings.Join(c.failed(), "\n")
	if !strings.HasPrefix(failed, "second lane: pool down: exit status 1\n") || !strings.Contains(failed, "second lane: it ended early; not run: removing ") {
		t.Errorf("failed:\n%s", failed)
	}
	if slices.Contains(c.calls(t, true), "pool up") {
		t.Error("a pool was started over the other")
	}
}

// TestInterrupted: after a signal nothing that the run started goes on, the second pool is
// removed, and the lanes count as failed.
func TestInterrupted(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(signal.String(), func(t *testing.T) {
			// Each lane waits in a process that one of its own has started, with this pipe open.
			c := newCheckout(t, `[ "$1" != up ] || [ -z "$lane" ] || mkdir -p "$PODSTARTER_STATE"`, `exec 3>"$0.alive"; sh -c 'echo >&3; sleep 1000; :'`)
			pipe := filepath.Join(c.root, "bin", "go.alive")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := c.script.Start(); err != nil {
				t.Fatal(err)
			}
			alive, err := os.Open(pipe)
			if err != nil {
				t.Fatal(err)
			}
			defer alive.Close()
			if _, err := io.ReadFull(alive, make([]byte, 2)); err != nil {
				t.Fatal(err)
			}
			if err := c.script.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			if code := c.end(t); code != 130 {
				t.Errorf("exit code %d, want 130:\n%s", code, &c.said)
			}
			if n := len(c.failed()); n != 4 {
				t.Errorf("failed: %q; want what each lane did, and what it did not", c.failed())
			}
			if calls := c.calls(t, true); calls[len(calls)-1] != "pool down" {
				t.Errorf("second lane: %q", calls)
			}
			// The end of the pipe is that of the last process.
			if _, err := io.ReadAll(alive); err != nil {
				t.Fatal(err)
			}
		})
	}
}
