package filetransfer

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/sandbox"
	"podstarter/sandbox/sandboxtest"
)

// TestDownloadToFullDisk takes input into a sandbox on a file system that has no
// room for all of it: what fits is there, what does not leaves nothing behind,
// and the verdict is the kernel's. The file system is mounted in a namespace of
// a process of its own.
func TestDownloadToFullDisk(t *testing.T) {
	if os.Getenv("SANDBOX_TEST_MOUNTS") == "" {
		cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
		cmd.Env = append(os.Environ(), "SANDBOX_TEST_MOUNTS=own")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
		if os.Geteuid() != 0 {
			// Root of a user namespace of its own may mount there too.
			cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
			cmd.Env = append(cmd.Env, "SANDBOX_TEST_MOUNTS=only")
		}
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	must(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	execute := sandboxtest.ExecuteDir(t)
	must(t, unix.Mount("small", execute, "tmpfs", 0, "size=1m,mode=755"))
	t.Cleanup(func() { must(t, unix.Unmount(execute, unix.MNT_DETACH)) })
	owner := sandboxtest.Owner()
	if os.Getenv("SANDBOX_TEST_MOUNTS") == "only" {
		owner = sandbox.Self() // no other user is mapped
	}
	s, err := sandbox.Create(context.Background(), sandbox.Options{Execute: execute, PID: 4711, Nested: true, Condor: sandbox.Self(), Payload: owner})
	must(t, err)

	f := newShadow(t)
	f.items = []sent{
		{command: 1, name: "first", mode: 0o644, data: "fits"},
		{command: 1, name: "large", mode: 0o644, data: big1(2 << 20)},
		{command: 1, name: "last", mode: 0o644, data: "fits again"},
	}
	_, err = f.transfer(s, plainJob).Download(context.Background())
	f.mustPlay()
	var v *Error
	if !errors.As(err, &v) {
		t.Fatalf("error %v", err)
	}
	want := "|Error: writing to file " + s.Scratch() + "/large: (errno 28) No space left on device"
	if v.Code != CodeDownload || v.Subcode != int(unix.ENOSPC) || v.TryAgain || !strings.Contains(v.Text, want) {
		t.Errorf("got %d/%d again=%v %q", v.Code, v.Subcode, v.TryAgain, v.Text)
	}
	for name, want := range map[string]string{"first": "fits", "last": "fits again"} {
		if got, err := os.ReadFile(s.Scratch() + "/" + name); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := os.Lstat(s.Scratch() + "/large"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file that did not fit is still there: %v", err)
	}
}
