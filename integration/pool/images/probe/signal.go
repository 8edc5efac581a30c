package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
	"unsafe"
)

// endBy ends this process by the signal's default action.
func endBy(s syscall.Signal) error {
	signal.Reset(s)
	// The Go runtime keeps handlers of its own; rt_sigaction(2) with an empty structure puts the default action back.
	var act struct {
		handler, flags, restorer uintptr
		mask                     uint64
	}
	_, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&act)), 0, unsafe.Sizeof(act.mask), 0, 0)
	if errno != 0 && s != syscall.SIGKILL && s != syscall.SIGSTOP {
		return fmt.Errorf("resetting the signal %d: %w", s, errno)
	}
	if err := syscall.Kill(os.Getpid(), s); err != nil {
		return fmt.Errorf("sending myself the signal %d: %w", s, err)
	}
	time.Sleep(time.Second)
	return fmt.Errorf("the signal %d did not end this process", s)
}
