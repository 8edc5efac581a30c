package podhealth

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"podstarter/rescue"
)

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
