package statedir

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Lock takes an exclusive lock on the file at path, which is made if needed, and waits for it as long as ctx lasts.
// waiting is called once if somebody else holds it. The lock ends with the returned function or with the process.
func Lock(ctx context.Context, path string, waiting func()) (func(), error) {
	f, err := LockFile(ctx, path, waiting)
	if err != nil {
		return nil, err
	}
	return func() { f.Close() }, nil
}

// LockFile is Lock for a lock that a child process is to hold as well: it ends when all have closed the file.
func LockFile(ctx context.Context, path string, waiting func()) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for first := true; ; first = false {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if err != unix.EWOULDBLOCK && err != unix.EINTR {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		if first && waiting != nil {
			waiting()
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("waiting for the lock %s: %w", path, ctx.Err())
		case <-tick.C:
		}
	}
}
