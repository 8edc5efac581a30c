package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// WaitFile calls ready with the content of a file (nil while there is none)
// now and after each change in its directory, until ready says true, fails, or
// the context ends.
func WaitFile(ctx context.Context, path string, ready func(content []byte) (bool, error)) error {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return fmt.Errorf("asking the kernel for file events: %w", err)
	}
	// A descriptor that does not block is read through the runtime's poller, so
	// that a deadline can interrupt it.
	notify := os.NewFile(uintptr(fd), "inotify")
	defer notify.Close()
	const changes = unix.IN_CREATE | unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_MOVED_TO
	if _, err := unix.InotifyAddWatch(fd, filepath.Dir(path), changes); err != nil {
		return fmt.Errorf("watching %s: %w", filepath.Dir(path), err)
	}
	stop := context.AfterFunc(ctx, func() { _ = notify.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()

	buffer := make([]byte, 64<<10)
	for {
		content, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		done, err := ready(content)
		if done || err != nil {
			return err
		}
		if _, err := notify.Read(buffer); err != nil {
			if ctx.Err() != nil {
				return fmt.Errorf("waiting for %s: %w", path, context.Cause(ctx))
			}
			return fmt.Errorf("waiting for %s: %w", path, err)
		}
	}
}

// Poll calls ready until it says true, fails, or the context ends: at short
// intervals first and longer ones later, up to a tenth of a second. It is for what
// gives no event.
func Poll(ctx context.Context, what string, ready func() (bool, error)) error {
	return poll(ctx, what, 100*time.Millisecond, ready)
}

// poll is Poll with another longest interval, for what costs much to look at.
func poll(ctx context.Context, what string, longest time.Duration, ready func() (bool, error)) error {
	interval := 10 * time.Millisecond
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for {
		done, err := ready()
		if done || err != nil {
			return err
		}
		timer.Reset(interval)
		interval = min(interval*3/2, longest)
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, context.Cause(ctx))
		case <-timer.C:
		}
	}
}
