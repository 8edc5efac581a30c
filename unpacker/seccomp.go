package main

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// needed are the system calls that reading, decompressing and writing need, with those of Go's
// runtime. All others end in EPERM: among them are all that make sockets, start programs, signal or
// trace processes, or change a file.
var needed = []uint32{
	unix.SYS_READ, unix.SYS_PREAD64, unix.SYS_WRITE, unix.SYS_WRITEV, unix.SYS_LSEEK, unix.SYS_FSTAT, unix.SYS_CLOSE, unix.SYS_FCNTL, unix.SYS_FADVISE64,
	unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MPROTECT, unix.SYS_MADVISE, unix.SYS_MINCORE, unix.SYS_BRK,
	unix.SYS_FUTEX, unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK, unix.SYS_RESTART_SYSCALL,
	unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_GETRANDOM, unix.SYS_UNAME,
	unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2, unix.SYS_PIPE2,
	unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_EXIT, unix.SYS_EXIT_GROUP,
}

// neededForTrees are those with which a directory is read as well. Landlock says where.
var neededForTrees = []uint32{unix.SYS_OPENAT, unix.SYS_NEWFSTATAT, unix.SYS_STATX, unix.SYS_GETDENTS64, unix.SYS_READLINKAT}

// Offsets in struct seccomp_data (seccomp(2)). The low half of an argument is first.
const (
	dataNumber = 0
	dataArch   = 4
	dataArg0   = 16
)

// filter is the program for the kernel (classic BPF).
func filter(tree bool) []unix.SockFilter {
	const (
		load  = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		some  = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
		give  = unix.BPF_RET | unix.BPF_K
	)
	refuse := func(errno unix.Errno) unix.SockFilter {
		return unix.SockFilter{Code: give, K: unix.SECCOMP_RET_ERRNO | uint32(errno)}
	}
	allow := unix.SockFilter{Code: give, K: unix.SECCOMP_RET_ALLOW}
	calls := needed
	if tree {
		calls = append(calls[:len(calls):len(calls)], neededForTrees...)
	}
	program := []unix.SockFilter{
		// Numbers mean something else to programs of other architectures.
		{Code: load, K: dataArch},
		{Code: equal, K: auditArch, Jt: 1},
		{Code: give, K: unix.SECCOMP_RET_KILL_PROCESS},
		{Code: load, K: dataNumber},
	}
	for _, call := range calls {
		program = append(program, unix.SockFilter{Code: equal, K: call, Jf: 1}, allow)
	}
	return append(program,
		// The C library, if there is one, then uses clone(2), whose flags can be looked at.
		unix.SockFilter{Code: equal, K: unix.SYS_CLONE3, Jf: 1}, refuse(unix.ENOSYS),
		// Threads, but no processes.
		unix.SockFilter{Code: equal, K: unix.SYS_CLONE, Jf: 3},
		unix.SockFilter{Code: load, K: dataArg0},
		unix.SockFilter{Code: some, K: unix.CLONE_THREAD, Jf: 1}, allow,
		// Signals to threads of this process, by which Go's runtime interrupts goroutines. The
		// accumulator is loaded again, because it may have the flags of clone.
		unix.SockFilter{Code: load, K: dataNumber},
		unix.SockFilter{Code: equal, K: unix.SYS_TGKILL, Jf: 3},
		unix.SockFilter{Code: load, K: dataArg0},
		unix.SockFilter{Code: equal, K: uint32(os.Getpid()), Jf: 1}, allow,
		refuse(unix.EPERM),
	)
}

// refuseSystemCalls gives all threads of this process the filter, which they cannot take off. It needs no_new_privs.
func refuseSystemCalls(tree bool) error {
	program := filter(tree)
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	// TSYNC answers with the id of a thread that could not be given the filter.
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog)))
	switch {
	case errno != 0:
		return fmt.Errorf("filter system calls: %w", errno)
	case thread != 0:
		return fmt.Errorf("filter system calls: thread %d has another filter", thread)
	}
	return nil
}
