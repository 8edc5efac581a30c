package beneath

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const payloadUID = 10001

// asPayload runs the rest of the calling test once more in a process that is
// the payload user throughout, and reports whether this is that process.
func asPayload(t *testing.T) bool {
	t.Helper()
	if os.Getenv("BENEATH_TEST_AS_PAYLOAD") == t.Name() {
		return true
	}
	needRoot(t)
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), "BENEATH_TEST_AS_PAYLOAD="+t.Name(), "TMPDIR=/tmp")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: payloadUID, Gid: payloadUID}}
	out, err := cmd.CombinedOutput()
	t.Logf("as uid %d:\n%s", payloadUID, out)
	if err != nil {
		t.Fatal(err)
	}
	return false
}

// mayMount reports whether this process may mount. An ordinary user has the rest of the
// calling test run in a process that may: as root of a user namespace and a mount namespace
// of its own.
func mayMount(t *testing.T) bool {
	t.Helper()
	if os.Geteuid() == 0 {
		return true
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	own := []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, UidMappings: own,
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) {
		t.Skipf("an ordinary user may make no user namespace here, so root has to run this test: %v", err)
	}
	t.Logf("in namespaces of its own:\n%s", out)
	if err != nil {
		t.Fatal(err)
	}
	return false
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

// tree makes a directory that the payload owns and may reach.
func tree(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "beneath")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := exec.Command("chmod", "-R", "u+rwX", dir).Run(); err == nil {
			os.RemoveAll(dir)
		}
	})
	top := filepath.Join(dir, "top")
	must(t, os.Mkdir(top, 0o700))
	must(t, os.Chmod(dir, 0o755))
	if os.Geteuid() == 0 {
		must(t, os.Chown(top, payloadUID, payloadUID))
	}
	return top
}

func must(t *testing.T, err error) {
	if err != nil {
		_, _, line, _ := runtime.Caller(1)
		t.Helper()
		t.Fatalf("line %d: %v", line, err)
	}
}

func write(t *testing.T, path, data string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(data), 0o644))
}
