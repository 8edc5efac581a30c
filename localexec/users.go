package localexec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// maxFileUsers is how many user IDs follow those of payloads, for leases of files only.
const maxFileUsers = 64

// usersFor is the range of user IDs for such a lease.
func (b *Backend) usersFor(filesOnly bool) (first, n int) {
	if filesOnly {
		return b.uid + b.users, maxFileUsers
	}
	return b.uid, b.users
}

// takeUser locks the first free user ID of a range. The lock is an open file (flock(2)) that the
// wrapper inherits, so the user ID is free only when both starter and wrapper have ended: a
// wrapper that briefly outlives its starter kills every process of its user ID.
func (b *Backend) takeUser(ctx context.Context, first, n int) (int, *os.File, error) {
	dir := filepath.Join(b.dir, "users")
	//nolint:forbidigo // below the private directory, closed to payloads
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return 0, nil, fmt.Errorf("make directory for locks of user IDs: %w", err)
	}
	for uid := first; uid < first+n; uid++ {
		if err := ctx.Err(); err != nil {
			return 0, nil, context.Cause(ctx)
		}
		path := filepath.Join(dir, fmt.Sprintf("%d.lock", uid))
		//nolint:forbidigo // below the private directory, closed to payloads
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
		if err != nil {
			return 0, nil, fmt.Errorf("lock user ID %d: %w", uid, err)
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return uid, f, nil
		}
		f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return 0, nil, fmt.Errorf("lock user ID %d: %w", uid, err)
		}
	}
	return 0, nil, fmt.Errorf("%w: %d from %d on; provide as many as the machine has slots", ErrNoUser, n, first)
}

// freeUser gives a user ID back. If no process of it is left, it is free at once, even if
// a program that starts just now has the lock's file, as it does between fork and exec.
// Else it is free when the wrapper, which has the file too, has ended.
func freeUser(lock *os.File, empty bool) error {
	var err error
	if empty {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_UN)
	}
	return errors.Join(err, lock.Close())
}
