package agent

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestCloseEachOnExec(t *testing.T) {
	fd, err := unix.Dup(unix.Stdin) // without the flag
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := closeEachOnExec(); err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct{ fd, want int }{{fd, unix.FD_CLOEXEC}, {unix.Stderr, 0}} {
		if flags, err := unix.FcntlInt(uintptr(f.fd), unix.F_GETFD, 0); err != nil || flags != f.want {
			t.Errorf("file %d: flags %d, %v", f.fd, flags, err)
		}
	}
}
