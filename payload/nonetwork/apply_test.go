//nolint:forbidigo,errcheck // the test program is its own child, whose output is read
package nonetwork_test

import (
	"errors"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"podstarter/payload/nonetwork"
)

// The test program is its own child: stage "apply" takes the filter and executes stage "try",
// which a payload would be.
const (
	stage     = "PODSTARTER_TEST_STAGE"
	listening = "PODSTARTER_TEST_LISTENS"
)

func TestMain(m *testing.M) {
	switch os.Getenv(stage) {
	case "apply":
		runtime.LockOSThread()
		if err := errors.Join(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), nonetwork.Apply()); err != nil {
			os.Stdout.WriteString(err.Error())
			os.Exit(1)
		}
		os.Setenv(stage, "try")
		_ = unix.Exec("/proc/self/exe", os.Args, os.Environ())
		os.Exit(1)
	case "try":
		try()
		os.Exit(0)
	}
	if call := foreign[os.Getenv(stage)]; call != nil {
		call()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// errnoOf is the name of a call's error, "ok" without.
func errnoOf(err error) string {
	var errno unix.Errno
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &errno):
		return unix.ErrnoName(errno)
	}
	return err.Error()
}

// try prints what a program can do, a line each.
func try() {
	say := func(what string, err error) { os.Stdout.WriteString(what + " " + errnoOf(err) + "\n") }
	for _, s := range []struct {
		name         string
		family, kind int
	}{
		{"inet stream", unix.AF_INET, unix.SOCK_STREAM}, {"inet datagram", unix.AF_INET, unix.SOCK_DGRAM}, {"inet raw", unix.AF_INET, unix.SOCK_RAW},
		{"inet6", unix.AF_INET6, unix.SOCK_STREAM}, {"netlink", unix.AF_NETLINK, unix.SOCK_RAW}, {"packet", unix.AF_PACKET, unix.SOCK_RAW},
		{"vsock", unix.AF_VSOCK, unix.SOCK_STREAM}, {"alg", unix.AF_ALG, unix.SOCK_SEQPACKET}, {"unix", unix.AF_UNIX, unix.SOCK_STREAM},
	} {
		_, err := unix.Socket(s.family, s.kind, 0)
		say(s.name, err)
	}
	_, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	say("pair", err)
	_, err = unix.Socketpair(unix.AF_INET, unix.SOCK_STREAM, 0)
	say("inet pair", err)
	for _, ring := range []uintptr{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER} {
		_, _, errno := unix.Syscall6(ring, 1, 0, 0, 0, 0, 0)
		say("io_uring", errno)
	}
	for _, key := range []uintptr{unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL} {
		_, _, errno := unix.Syscall6(key, 0, 0, 0, 0, 0, 0)
		say("key", errno)
	}
	_, err = net.Dial("unix", os.Getenv(listening))
	say("connect to a unix socket", err)
	// What a program starts is under the filter as well.
	for _, name := range slices.Sorted(maps.Keys(foreign)) {
		child := exec.Command("/proc/self/exe")
		child.Env = append(os.Environ(), stage+"="+name)
		err := child.Run()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			err = errors.New(exit.Sys().(syscall.WaitStatus).Signal().String())
		}
		say(name, err)
	}
}

// TestApply has a child process try what it can do, without and with the filter.
func TestApply(t *testing.T) {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skipf("there is no filter for %s", runtime.GOARCH)
	}
	socket := filepath.Join(t.TempDir(), "socket")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	child := func(first string) string {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), stage+"="+first, listening+"="+socket)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return string(out)
	}
	free := child("try")
	if !strings.Contains(free, "inet stream ok\n") || strings.Contains(free, "bad system call") {
		t.Errorf("without the filter:\n%s", free)
	}
	var ends []string
	for _, name := range slices.Sorted(maps.Keys(foreign)) {
		end := " bad system call\n"
		if !strings.Contains(free, name+" ok\n") {
			end = " segmentation fault\n" // this kernel does not have that table
		}
		ends = append(ends, name+end)
	}
	const none = " EAFNOSUPPORT\n"
	want := "inet stream" + none + "inet datagram" + none + "inet raw" + none + "inet6" + none + "netlink" + none + "packet" + none + "vsock" + none + "alg" + none +
		"unix ok\npair ok\ninet pair" + none + "io_uring ENOSYS\nio_uring ENOSYS\nio_uring ENOSYS\nkey ENOSYS\nkey ENOSYS\nkey ENOSYS\nconnect to a unix socket ok\n" +
		strings.Join(ends, "")
	if diff := cmp.Diff(want, child("apply")); diff != "" {
		t.Errorf("under the filter (-want +got):\n%s", diff)
	}
}
