// Package hostprogtest makes what tests of programs need: scripts, a sandbox, and a
// process that is a pilot without root.
package hostprogtest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"podstarter/sandbox"
)

// publicDir is a directory that every user may enter, unlike testing.T's.
func publicDir(t *testing.T, name string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })  //nolint:forbidigo // made here
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:forbidigo // made here
		t.Fatal(err)
	}
	return dir
}

// Script makes a shell script that every user may run.
func Script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(publicDir(t, "program"), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// Sandbox makes a sandbox of a payload user; without root, of this process' user.
func Sandbox(t *testing.T, uid int) *sandbox.Sandbox {
	t.Helper()
	owner := sandbox.Self()
	if os.Getuid() == 0 {
		owner = sandbox.Owner{UID: uid, GID: uid}
	}
	box, err := sandbox.Create(t.Context(), sandbox.Options{Execute: publicDir(t, "execute"), PID: os.Getpid(), Condor: sandbox.Self(), Payload: owner})
	if err != nil {
		t.Fatal(err)
	}
	return box
}

// AsPilot runs the rest of the calling test in a process without root's rights, as a
// pilot without root is, and reports whether this is that process.
func AsPilot(t *testing.T) bool {
	t.Helper()
	if os.Getuid() != 0 {
		return true
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env, cmd.Dir = append(os.Environ(), "TMPDIR=/tmp"), "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 4716, Gid: 4716}}
	out, err := cmd.CombinedOutput()
	t.Logf("as uid 4716:\n%s", out)
	if err != nil {
		t.Fatal(err)
	}
	return false
}

// Trap is a sandbox as a job makes it to find out what programs can reach: with links
// to a secret of the pilot's.
type Trap struct {
	Sandbox *sandbox.Sandbox
	Program string // looks for the secret, and writes what it finds to the file "said"
	secret  string
}

// NewTrap makes one. Confined programs find the job's own file only; see Check.
func NewTrap(t *testing.T) Trap {
	t.Helper()
	dir, err := os.MkdirTemp("", "secret")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) //nolint:forbidigo // made here
	trap := Trap{Sandbox: Sandbox(t, 0), secret: filepath.Join(dir, "token")}
	box := trap.Sandbox.Scratch()
	err = errors.Join(os.WriteFile(trap.secret, []byte("the pilot's token"), 0o600),
		os.Symlink(trap.secret, box+"/use"), os.Mkdir(box+"/creds", 0o700), os.Symlink(trap.secret, box+"/creds/evil.use"),
		os.Symlink(dir, box+"/dir"), os.WriteFile(box+"/file", []byte("the job's"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	trap.Program = Script(t, `exec 2>/dev/null
for path in use ./creds/evil.use "`+trap.secret+`" dir/token /proc/`+"$PPID"+`/environ; do cat "$path" && echo " by $path"; done >said
(echo x >"`+dir+`/left") && echo "left something" >>said
cat file >>said; cat said
`)
	return trap
}

// Check fails the test unless the program ran, found nothing but the job's file, and
// left nothing outside of the sandbox.
func (trap Trap) Check(t *testing.T) {
	t.Helper()
	said, err := trap.Sandbox.ReadFile("said", 1<<16)
	if string(said) != "the job's" || err != nil {
		t.Errorf("the program found %q, %v", said, err)
	}
	if left, _ := filepath.Glob(filepath.Dir(trap.secret) + "/left"); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}
