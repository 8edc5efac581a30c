package startd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrParentGone is in the error chain if the startd has ended. A starter does
// not outlive it (condor_daemon_core.V6/daemon_core.cpp:check_parent).
var ErrParentGone = errors.New("the startd that spawned this starter is gone")

// Intervals for polling the parent if its end cannot be waited for
// (daemon_core.cpp: check_parent).
const (
	firstParentCheck = 15 * time.Second
	parentCheck      = 120 * time.Second
)

// watchParent returns an error when the process ends, nil when ctx ends.
func watchParent(ctx context.Context, pid int) error {
	gone := fmt.Errorf("process %d: %w", pid, ErrParentGone)
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	switch {
	case errors.Is(err, unix.ESRCH):
		return gone
	case err != nil:
		return pollParent(ctx, pid, gone)
	}
	// A pidfd becomes readable when the process has ended (pidfd_open(2)).
	f := os.NewFile(uintptr(fd), "pidfd")
	defer f.Close()
	raw, err := f.SyscallConn()
	if err != nil {
		return pollParent(ctx, pid, gone)
	}
	stop := context.AfterFunc(ctx, func() { _ = f.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	err = raw.Read(func(fd uintptr) bool {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return err == nil && n > 0
	})
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil: // the runtime cannot wait for this descriptor
		return pollParent(ctx, pid, gone)
	}
	return gone
}

func pollParent(ctx context.Context, pid int, gone error) error {
	timer := time.NewTimer(firstParentCheck)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			return gone
		}
		timer.Reset(parentCheck)
	}
}
