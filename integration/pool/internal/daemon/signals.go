package daemon

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sigaction is the kernel's struct of rt_sigaction(2) on Linux.
type sigaction struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

const (
	sigDefault = 0 // SIG_DFL
	sigIgnore  = 1 // SIG_IGN
	lastSignal = 64
)

// restoreSignals gives every ignored signal its default again. Everything that a
// daemon starts, down to the jobs, inherits ignored signals, and they depend on who
// started the pool: make(1), for one, leaves the C library's own signals 32 and 33
// ignored in its children.
func restoreSignals() error {
	for sig := uintptr(1); sig <= lastSignal; sig++ {
		if sig == uintptr(unix.SIGKILL) || sig == uintptr(unix.SIGSTOP) {
			continue
		}
		var action sigaction
		if err := rtSigaction(sig, nil, &action); err != nil {
			return fmt.Errorf("look at signal %d: %w", sig, err)
		}
		if action.handler != sigIgnore {
			continue
		}
		if err := rtSigaction(sig, &sigaction{handler: sigDefault}, nil); err != nil {
			return fmt.Errorf("restore signal %d: %w", sig, err)
		}
	}
	return nil
}

func rtSigaction(sig uintptr, set, old *sigaction) error {
	const setSize = lastSignal / 8
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(set)), uintptr(unsafe.Pointer(old)), setSize, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
