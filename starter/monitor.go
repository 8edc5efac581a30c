package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/condor/config"
	"podstarter/rescue"
)

// monitor is `condor_pod_starter -monitor`, a STARTD_CRON job in the mode
// WaitForExit: it prints what the slots' ads are to say of the pod, again
// whenever that changes, until the startd closes its end of the pipe.
func monitor(cfg *config.Config) int {
	if err := monitorStatus(cfg.String("LOCK", os.TempDir()), os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "condor_pod_starter -monitor: %v\n", err)
		return exitGeneral
	}
	return exitNormal
}

// monitorStatus prints to out until nobody reads it any more. It is one loop
// around poll(2), since it lives as long as the pod and the pod's memory is the
// jobs'.
func monitorStatus(lock string, out *os.File) error {
	notify, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return fmt.Errorf("ask the kernel for changes of files (inotify_init1): %w", err)
	}
	defer func() { _ = unix.Close(notify) }()
	if _, err := unix.InotifyAddWatch(notify, lock, unix.IN_MOVED_TO); err != nil {
		return fmt.Errorf("watch the directory %s (inotify_add_watch): %w", lock, err)
	}
	waiting := []unix.PollFd{{Fd: int32(notify), Events: unix.POLLIN}, {Fd: int32(out.Fd())}}
	events := make([]byte, 4096)
	told, known := "", make(map[string]bool)
	for {
		now := time.Now()
		s, err := readStatus(lock, now)
		if err != nil {
			// Better no news than none of a pod that is well.
			fmt.Fprintf(os.Stderr, "condor_pod_starter -monitor: %v\n", err)
		}
		if text := s.ads(now, known); text != told {
			if _, err := io.WriteString(out, text); err != nil {
				return nil // the startd is gone
			}
			told = text
		}
		timeout := -1
		if next := s.next(now); !next.IsZero() {
			timeout = int(time.Until(next).Milliseconds()) + 1
			timeout = max(timeout, 0)
		}
		if _, err := unix.Poll(waiting, timeout); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("wait for changes (poll): %w", err)
		}
		if waiting[1].Revents != 0 { // POLLERR: no reader is left (pipe(7))
			return nil
		}
		for {
			if n, err := unix.Read(notify, events); n <= 0 || err != nil {
				break
			}
		}
	}
}

func sortedKeys(m map[string]bool) []string { return slices.Sorted(maps.Keys(m)) }

// watchDirectory sends a value after files were put in place in a directory,
// until ctx ends. Several changes at once may be one value.
func watchDirectory(ctx context.Context, path string) (<-chan struct{}, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("ask the kernel for changes of files (inotify_init1): %w", err)
	}
	// A descriptor that does not block is read through the runtime's poller, so
	// that closing it ends a read.
	notify := os.NewFile(uintptr(fd), "inotify")
	if _, err := unix.InotifyAddWatch(fd, path, unix.IN_MOVED_TO); err != nil {
		notify.Close()
		return nil, fmt.Errorf("watch the directory %s (inotify_add_watch): %w", path, err)
	}
	context.AfterFunc(ctx, func() { notify.Close() })
	changed := make(chan struct{}, 1)
	rescue.Go(func() {
		defer close(changed)
		events := make([]byte, 4096)
		for {
			if _, err := notify.Read(events); err != nil {
				return
			}
			select {
			case changed <- struct{}{}:
			default:
			}
		}
	})
	return changed, nil
}
