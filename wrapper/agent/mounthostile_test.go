package agent_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/payload"
	"podstarter/wrapper/agent/agenttest"
)

// mountedTmpfs mounts a file system of this test's alone.
func mountedTmpfs(t *testing.T, at string) {
	t.Helper()
	if err := unix.Mount("hostile", at, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
}

// TestMountOfAMount: what somebody has mounted in the sandbox, as its user may by FUSE, takes the place of no directory of the machine.
func TestMountOfAMount(t *testing.T) {
	if !agenttest.Root() {
		t.Skip("only root can mount; the same test runs as root")
	}
	machine := agenttest.PublicDir(t)
	sandbox := mountedSandbox(t, parents(machine)...)
	mountedTmpfs(t, sandbox+machine)
	uid, gid := agenttest.Payload()
	if err := os.Chown(sandbox+machine, uid, gid); err != nil {
		t.Fatal(err)
	}
	c := agenttest.StartWrapper(t, ownNamespace).Dial(t)
	if out, err := runHere(t, c, "job", &payload.Mounts{Sandbox: sandbox, Dirs: []string{machine}}, "echo ran"); !failedAt(err, payload.StageScratch) {
		t.Errorf("%q, %v", out, err)
	}
}

// TestMountOfALink: a link in place of the sandbox is not followed.
func TestMountOfALink(t *testing.T) {
	if !agenttest.Root() {
		t.Skip("only root can mount; the same test runs as root")
	}
	machine := agenttest.PublicDir(t)
	link := filepath.Join(agenttest.PublicDir(t), "link")
	if err := os.Symlink(mountedSandbox(t, parents(machine)...), link); err != nil {
		t.Fatal(err)
	}
	c := agenttest.StartWrapper(t, ownNamespace).Dial(t)
	if out, err := runHere(t, c, "job", &payload.Mounts{Sandbox: link, Dirs: []string{machine}}, "echo ran"); !failedAt(err, payload.StageMount) {
		t.Errorf("%q, %v", out, err)
	}
}

// TestSharedMemoryRights: no program in the payload's shared memory gives rights, and no file there is a device.
func TestSharedMemoryRights(t *testing.T) {
	if !agenttest.Root() {
		t.Skip("only root can mount; the same test runs as root")
	}
	c := agenttest.StartWrapper(t, ownNamespace).Dial(t)
	out, err := runHere(t, c, "job", &payload.Mounts{Sandbox: mountedSandbox(t), SharedMemory: true}, "grep ' /dev/shm ' /proc/self/mountinfo | tail -n 1")
	if err != nil || !strings.Contains(out, "nosuid,nodev") {
		t.Errorf("%q, %v", out, err)
	}
}
