package k8sexec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/privatedir"
	"podstarter/k8sexec/verdict"
	"podstarter/payload"
)

// lease implements payload.Lease: a payload container that belongs to this process
// until Release or the end of the process. Its methods are for one goroutine at a time.
type lease struct {
	backend *Backend
	name    string // of the container
	index   int    // among the payload containers
	private *os.Root
	lock    *os.File
	used    bool          // Bind has noted the container as in use
	clock   *clock        // of the binding
	fetched time.Duration // how long the binding waited for a puller
	fitted  podapi.Limits // what fit gave the container; nothing if it did not try
	pinned  pinned        // what the registry said of the image of the binding

	mu        sync.Mutex
	container *container // of the latest binding
	released  bool
}

// Lease implements payload.Backend. It takes a payload container that no other starter
// has, with spares the best for the job, and returns when no process of an earlier payload in it is alive. If all are
// taken it waits a moment: a starter that has reported its job's exit may not have
// ended yet. It fails with a *payload.Verdict, or with the cause of ctx's end.
func (b *Backend) Lease(ctx context.Context, wish payload.Wish) (payload.Lease, error) {
	private, err := privatedir.Open(b.opt.PrivateDir)
	if err != nil {
		return nil, verdict.Of(&verdict.Failure{Origin: verdict.FromPilot, Reason: verdict.ReasonPrivateDir, Err: err})
	}
	if wish.FilesOnly {
		return b.leaseUser(ctx, private)
	}
	l, err := b.waitForLease(ctx, private, wish)
	if err != nil {
		_ = private.Close()
		return nil, verdict.Of(err)
	}
	b.log.Debug("leased payload container", "container", l.name, "uid", b.opt.BaseUID+l.index)
	if err := l.vacate(ctx); err != nil {
		return nil, errors.Join(verdict.Of(err), l.Release(ctx))
	}
	return l, nil
}

func (b *Backend) waitForLease(ctx context.Context, private *os.Root, wish payload.Wish) (*lease, error) {
	deadline := time.NewTimer(b.timing.leaseWait)
	defer deadline.Stop()
	poll := time.NewTicker(b.timing.leasePoll)
	defer poll.Stop()
	for {
		l, err := b.tryLease(private, wish)
		if l != nil {
			return l, nil
		}
		if err != nil {
			return nil, &verdict.Failure{Origin: verdict.FromPilot, Reason: verdict.ReasonPrivateDir, Err: err}
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-deadline.C:
			among := b.opt.Containers
			if wish.Only != nil {
				among = wish.Only
			}
			return nil, &verdict.Failure{Origin: verdict.FromPilot, Reason: verdict.ReasonNoneFree, Message: strings.Join(among, ", ")}
		}
	}
}

// tryLease takes the best container that is free. If none is, it returns nil without
// an error.
func (b *Backend) tryLease(private *os.Root, wish payload.Wish) (*lease, error) {
	for _, i := range b.order(private, wish) {
		if l, err := b.leaseOf(private, i); l != nil || err != nil {
			return l, err
		}
	}
	return nil, nil
}

// leaseOf takes one container if it is free.
func (b *Backend) leaseOf(private *os.Root, index int) (*lease, error) {
	name := b.opt.Containers[index]
	lock, err := tryLock(private, "lease."+name)
	if lock == nil {
		return nil, err
	}
	return &lease{backend: b, name: name, index: index, private: private, lock: lock}, nil
}

// tryLock takes a lock in the private directory until the file is closed. It is nil
// without an error if somebody has it.
func tryLock(private *os.Root, name string) (*os.File, error) {
	// Never unlink the file: two starters could then hold locks on two files of that name.
	f, err := private.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return f, nil
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return nil, nil
	}
	return nil, fmt.Errorf("lock %s: %w", name, err)
}

// Owner implements payload.Lease: the user and group of payloads in this container. A
// pilot without root cannot give files to another user, so its payload runs as its own
// user.
func (l *lease) Owner() (uid, gid int) {
	if !l.backend.self.IsRoot() {
		return l.backend.self.UID, l.backend.self.GID
	}
	id := l.backend.opt.BaseUID + l.index
	return id, id
}

// Release implements payload.Lease. It gives the container back. The connection to its wrapper is closed,
// which ends whatever is left of the payload; the container itself is made anew
// by the next binding. Release makes no API call, unless it has to give the container its
// limits back, and may be called twice.
func (l *lease) Release(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.released {
		return nil
	}
	l.released = true
	// Log first: in the logs, a container has one lease at a time.
	l.backend.log.Debug("releasing payload container", "container", l.name)
	empty := true
	if l.container != nil {
		l.container.close()
		empty = l.container.client.Empty() || l.container.ended.Load()
	}
	if l.used && empty {
		l.giveBack()
	}
	l.unfit(ctx)
	// A program that starts just now has the lock's file until it executes, so closing it
	// would not do.
	err := unix.Flock(int(l.lock.Fd()), unix.LOCK_UN)
	return errors.Join(err, l.lock.Close(), l.private.Close())
}

func (l *lease) isReleased() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.released
}

// giveBack notes that this starter did not die with a job in the container, and left no
// process there that does not die.
func (l *lease) giveBack() {
	if known, err := readSlot(l.private, l.name); err == nil && known.InUse {
		known.InUse = false
		l.note(known)
	}
}

// controlDir is the container's control directory.
func (l *lease) controlDir() string { return filepath.Join(l.backend.opt.ControlDir, l.name) }

func (l *lease) digests() *digests {
	return &digests{dir: l.private, lifetime: l.backend.opt.DigestLifetime, now: time.Now}
}
