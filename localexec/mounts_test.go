package localexec_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"podstarter/localexec"
	"podstarter/payload"
	"podstarter/wrapper/agent/agenttest"
)

// TestMounts: with the right to mount, a lease's payload has a directory of its own in place of the machine's. When the wrapper is killed,
// nothing stays mounted.
func TestMounts(t *testing.T) {
	dir := agenttest.PublicDir(t)
	uid, _ := agenttest.Payload()
	b, err := localexec.New(localexec.Options{Dir: filepath.Join(dir, "private"), UID: uid, Users: 1, Mounts: true})
	if err != nil {
		t.Fatal(err)
	}
	l := lease(t, b)
	w := bind(t, l, "job1").Client()
	if w.Hello().OwnMounts != agenttest.Root() {
		t.Fatalf("mounts of its own: %v", w.Hello().OwnMounts)
	}
	if !agenttest.Root() {
		return
	}
	machine, sandbox := filepath.Join(dir, "machine"), filepath.Join(agenttest.PublicDir(t), "sandbox")
	if err := errors.Join(os.Mkdir(machine, 0o777), os.MkdirAll(sandbox+machine, 0o755), os.Chown(sandbox+machine, uid, uid)); err != nil {
		t.Fatal(err)
	}
	s := payload.Spec{Activation: "job1", UID: uid, GID: uid, Path: "/bin/sh", Args: []string{"sh", "-c", "echo mine >" + machine + "/mine; exec sleep 1000"}, Dir: "/", Umask: 0o022,
		Env: []string{"PATH=/usr/bin:/bin"}, Mounts: &payload.Mounts{Sandbox: sandbox, Dirs: []string{machine}, SharedMemory: true}}
	started, err := w.Start(agenttest.Context(t), s)
	if err != nil {
		t.Fatal(err)
	}
	mounts, err := os.ReadFile("/proc/" + strconv.Itoa(started.PID) + "/mountinfo")
	if err != nil || !strings.Contains(string(mounts), machine) {
		t.Errorf("nothing is mounted: %s, %v", mounts, err)
	}
	if err := syscall.Kill(w.Hello().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_, _ = w.Wait(agenttest.Context(t))
	if err := l.Release(agenttest.Context(t)); err != nil {
		t.Log(err) // the wrapper was killed
	}
	if err := os.RemoveAll(sandbox); err != nil { // a mount in any namespace would keep none of it, but one here would
		t.Error(err)
	}
	for _, f := range []string{"/proc/self/mountinfo", "/proc/1/mountinfo"} {
		if mounts, err := os.ReadFile(f); err != nil || strings.Contains(string(mounts), machine) {
			t.Errorf("%s: %s, %v", f, mounts, err)
		}
	}
	if found, err := os.ReadDir(machine); err != nil || len(found) > 0 {
		t.Errorf("the machine has %v, %v", found, err)
	}
}

// TestMountsWithoutRights: root without the capability runs payloads as before.
func TestMountsWithoutRights(t *testing.T) {
	if !agenttest.Root() {
		t.Skip("without root there is nothing to take away")
	}
	b := powerless(t)
	if bind(t, lease(t, b), "job1").Client().Hello().OwnMounts {
		t.Error("it says that it can mount")
	}
}
