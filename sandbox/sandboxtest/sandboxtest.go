// Package sandboxtest makes sandboxes for tests, with what a payload leaves in them.
package sandboxtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"podstarter/sandbox"
)

// Users of tests that are run by root: of the payload and of HTCondor.
const (
	PayloadUID = 10001
	CondorUID  = 10064
)

// Owner is the owner of job files in tests: another user if this process is root, else
// its own user.
func Owner() sandbox.Owner {
	if os.Geteuid() != 0 {
		return sandbox.Self()
	}
	return sandbox.Owner{UID: PayloadUID, GID: PayloadUID}
}

// AsPayload runs the rest of the calling test once more in a process without
// root's rights, and reports whether this is that process.
func AsPayload(t *testing.T) bool {
	t.Helper()
	if os.Getenv("SANDBOX_TEST_AS_PAYLOAD") == t.Name() {
		return true
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$", "-test.v")
	cmd.Env = append(os.Environ(), "SANDBOX_TEST_AS_PAYLOAD="+t.Name(), "TMPDIR=/tmp")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: PayloadUID, Gid: PayloadUID}}
	out, err := cmd.CombinedOutput()
	t.Logf("as uid %d:\n%s", PayloadUID, out)
	if err != nil {
		t.Fatal(err)
	}
	return false
}

// ExecuteDir makes an EXECUTE directory that anybody may reach.
func ExecuteDir(t testing.TB) string { return ExecuteDirIn(t, "/tmp") }

// ExecuteDirIn is ExecuteDir in a directory of the caller's.
func ExecuteDirIn(t testing.TB, parent string) string {
	t.Helper()
	dir, err := os.MkdirTemp(parent, "execute")
	check(t, err)
	check(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// New makes a sandbox. At the end of the test nothing in it may be open, and it is removed.
func New(t testing.TB) *sandbox.Sandbox { return NewIn(t, ExecuteDir(t)) }

// NewIn is New in an EXECUTE directory of the caller's.
func NewIn(t testing.TB, execute string) *sandbox.Sandbox {
	t.Helper()
	s, err := sandbox.Create(context.Background(), sandbox.Options{
		Execute: execute, PID: 4711, Nested: true, Condor: sandbox.Self(), Payload: Owner(),
	})
	check(t, err)
	t.Cleanup(func() {
		for _, name := range openBelow(s.Scratch()) {
			t.Errorf("%s is left open", name)
		}
		if err := s.Remove(context.Background()); err != nil {
			t.Errorf("clean up: %v", err)
		}
	})
	return s
}

// openBelow lists what this process has open below a directory.
func openBelow(dir string) (list []string) {
	links, _ := filepath.Glob("/proc/self/fd/*")
	for _, link := range links {
		if name, err := os.Readlink(link); err == nil && strings.HasPrefix(name, dir+"/") {
			list = append(list, name)
		}
	}
	return list
}

// As runs a function as the payload, for tests to leave what it leaves.
func As(t testing.TB, s *sandbox.Sandbox, do func(dir string) error) {
	t.Helper()
	check(t, s.Payload().Do(func() error { return do(s.Scratch()) }))
}

// Put writes files as the payload: "name" -> content; a name that ends in "/"
// is a directory, content that begins with "->" a link.
func Put(t testing.TB, s *sandbox.Sandbox, files map[string]string) {
	t.Helper()
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	As(t, s, func(dir string) error {
		for _, name := range names {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			content := files[name]
			var err error
			if target, ok := strings.CutPrefix(content, "->"); ok {
				err = os.Symlink(target, path)
			} else if strings.HasSuffix(name, "/") {
				err = os.MkdirAll(path, 0o755)
			} else {
				err = os.WriteFile(path, []byte(content), 0o644)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
