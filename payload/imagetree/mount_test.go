package imagetree

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// mounts says whether the rest of the calling test runs here. An ordinary user has it run in a process
// that may mount: root of a user namespace of its own.
func mounts(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() == 0 {
		return true
	}
	again := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	mapped := func(id int) []syscall.SysProcIDMap { return []syscall.SysProcIDMap{{HostID: id, Size: 1}} }
	again.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: mapped(os.Geteuid()), GidMappings: mapped(os.Getegid()),
	}
	out, err := again.CombinedOutput()
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) {
		t.Skipf("an ordinary user may make no user namespace here, so root has to run this test: %v", err)
	}
	if err != nil {
		t.Errorf("as root of a user namespace: %v\n%s", err, out)
	}
	return false
}
