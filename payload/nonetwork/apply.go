package nonetwork

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Apply puts the calling thread, and all that it will fork or execute, under the filter. The
// caller has locked the thread and set no_new_privs. Other threads of the process are not
// touched.
//
// An error says that the kernel, or a filter around this one, does not take filters, or that
// there is none for this architecture (ENOSYS).
func Apply() error {
	m, ok := machines[runtime.GOARCH]
	if !ok {
		return fmt.Errorf("take the network away: there is no filter of system calls for %s: %w", runtime.GOARCH, unix.ENOSYS)
	}
	filter := m.filter()
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	// The flag keeps older kernels from slowing down all that the program does, since they take
	// every filter for a sign of untrusted code in the process (Documentation/userspace-api/spec_ctrl).
	err := set(&program, unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW)
	if errors.Is(err, unix.EINVAL) { // Linux before 4.17
		err = set(&program, 0)
	}
	runtime.KeepAlive(filter)
	if err != nil {
		return fmt.Errorf("take the network away by a filter of system calls (seccomp): %w", err)
	}
	return nil
}

// set is a raw system call: it is this thread's only.
func set(program *unix.SockFprog, flags uintptr) error {
	if _, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(program))); errno != 0 {
		return errno
	}
	return nil
}
