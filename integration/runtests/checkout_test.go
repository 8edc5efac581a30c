package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
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

// newCheckout makes one. The two programs are text for a shell, which finds in $lane the
// name of the lane that calls it and a blank; nothing if it is the first.
func newCheckout(t *testing.T, pool, goCommand string, args ...string) *checkout {
	t.Helper()
	c := &checkout{root: t.TempDir()}
	script, err := os.ReadFile("../run-tests")
	if err != nil {
		t.Fatal(err)
	}
	note := func(name string) string {
		return fmt.Sprintf("#!/bin/sh\ncase $PODSTARTER_STATE in *.state-*) lane=\"${PODSTARTER_STATE##*.state-} \" ;; esac\necho \"${lane}%s $*\" >>%q\n",
			name, filepath.Join(c.root, "calls"))
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

// calls are those of the two programs, one a line, of a lane; that of the first has no name.
// Only what a call is about is kept.
func (c *checkout) calls(t *testing.T, lane string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.root, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		of := ""
		if f[0] != "pool" && f[0] != "go" {
			of, f = f[0], f[1:]
		}
		if of != lane {
			continue
		}
		at := slices.IndexFunc(f, func(word string) bool { return strings.HasPrefix(word, "./") })
		if f[0] == "pool" {
			found = append(found, strings.Join(f[:2], " "))
		} else {
			found = append(found, strings.TrimPrefix(f[at], "./"))
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
