package podhealth

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/internal/filewatch"
)

// Monitor prints to out what the slots' ads are to say of the pod whose state is
// published in dir, in the form of a STARTD_CRON job in the mode WaitForExit, and
// prints it again whenever it changes. It returns nil when nobody reads out any
// more; complain gets the errors after which it goes on.
//
// It is one loop around poll(2), since it lives as long as the pod, and each byte
// that it takes of the pod's memory is missing for jobs.
func Monitor(dir string, out *os.File, complain func(error)) error {
	changes, err := filewatch.New()
	if err != nil {
		return err
	}
	defer changes.Close()
	if err := changes.Add(dir, filewatch.Placed); err != nil {
		return err
	}
	waiting := []unix.PollFd{{Fd: int32(changes.FD()), Events: unix.POLLIN}, {Fd: int32(out.Fd())}}
	told, known := "", make(map[string]bool)
	for {
		now := time.Now()
		s, err := readPublished(dir, now)
		if err != nil {
			complain(err) // and count the pod as healthy
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
		changes.Drain()
	}
}
