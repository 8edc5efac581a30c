package harness

import (
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Deafen keeps a process from hearing that its children have ended: it holds back
// SIGCHLD, and the process continues otherwise. The returned function lets the process
// hear, once; it is no error if the process has ended. The process must have one
// thread, as HTCondor's daemons do.
//
// This is what a busy machine does to a daemon: a child's connections are closed
// before its parent is told of its end.
func Deafen(p Process) (hear func() error, err error) {
	attached, ended := make(chan error, 1), make(chan error, 1)
	var enough atomic.Bool
	go func() {
		// Only the thread that attached may control the process, and only its waits
		// are hidden from the rest of this program. It ends with the goroutine.
		runtime.LockOSThread()
		err := unix.PtraceSeize(p.PID)
		attached <- err
		if err == nil {
			ended <- holdBack(p.PID, &enough)
		}
	}()
	if err := <-attached; err != nil {
		return nil, fmt.Errorf("attaching to process %v: %w", p, err)
	}
	done := false
	return func() error {
		if done {
			return nil
		}
		done = true
		enough.Store(true)
		if err := gone(unix.Kill(p.PID, unix.SIGCHLD)); err != nil {
			return fmt.Errorf("telling %v of its children: %w", p, err)
		}
		if err := <-ended; err != nil {
			return fmt.Errorf("letting go of process %v: %w", p, err)
		}
		return gone(unix.Kill(p.PID, unix.SIGCHLD)) // what woke it did not reach it
	}, nil
}

// holdBack passes each signal on except SIGCHLD, until it is told to stop.
func holdBack(pid int, enough *atomic.Bool) error {
	for {
		var status unix.WaitStatus
		_, err := unix.Wait4(pid, &status, unix.WALL|unix.WNOTHREAD, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return err
		case status.Exited() || status.Signaled():
			return nil
		}
		signal := status.StopSignal()
		if status>>16 != 0 { // a stop of its own, which no signal caused
			signal = 0
		}
		if signal == unix.SIGCHLD {
			if enough.Load() {
				return gone(unix.PtraceDetach(pid))
			}
			signal = 0
		}
		if err := gone(unix.PtraceCont(pid, int(signal))); err != nil {
			return err
		}
	}
}

// gone ignores the error of a process that no longer exists.
func gone(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}
