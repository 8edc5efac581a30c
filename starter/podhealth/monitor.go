package podhealth

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Monitor prints to out what the slots' ads are to say of the pod whose state is
// published in dir, in the form of a STARTD_CRON job in the mode WaitForExit, and
// prints it again whenever it changes. It returns nil when nobody reads out any
// more; complain gets the errors after which it goes on.
//
// It is one loop around poll(2), since it lives as long as the pod, and each byte
// that it takes of the pod's memory is missing for jobs.
func Monitor(dir string, out *os.File, complain func(error)) error {
	notify, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return fmt.Errorf("ask the kernel for changes of files (inotify_init1): %w", err)
	}
	defer func() { _ = unix.Close(notify) }()
	if _, err := unix.InotifyAddWatch(notify, dir, unix.IN_MOVED_TO); err != nil {
		return fmt.Errorf("watch the directory %s (inotify_add_watch): %w", dir, err)
	}
	waiting := []unix.PollFd{{Fd: int32(notify), Events: unix.POLLIN}, {Fd: int32(out.Fd())}}
	events := make([]byte, 4096)
	told, known := "", make(map[string]bool)
	for {
		now := time.Now()
		s, err := readPublished(dir, now)
		if err != nil {
			complain(err) // and count the pod as well
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
