package group

import (
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// withoutClone3 does something on a thread for which the kernel has no clone3(2), as in a container whose runtime cannot look into its
// argument.
func withoutClone3(t *testing.T, errno unix.Errno, do func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		filter := []unix.SockFilter{
			{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0}, // the number of the system call
			{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_CLONE3},
			{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
			{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		}
		program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			done <- err
			return
		}
		if _, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))); errno != 0 {
			done <- errno
			return
		}
		do()
	}()
	if err := <-done; err != nil {
		t.Fatalf("set a filter of system calls: %v", err)
	}
}

// TestFindFiltered: where no process can be started in a group, there is none. Podman gives a container with systemd control groups that it may
// write to, and no clone3(2).
func TestFindFiltered(t *testing.T) {
	_, top := hierarchy(t)
	for _, errno := range []unix.Errno{unix.ENOSYS, unix.EPERM} {
		withoutClone3(t, errno, func() {
			q, err := Find(Site{Base: "htcondor", Top: top})
			if err == nil {
				q.Close()
			}
			if err == nil || !strings.Contains(err.Error(), "clone3") {
				t.Errorf("%v", err)
			}
		})
	}
}
