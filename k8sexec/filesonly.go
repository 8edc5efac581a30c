package k8sexec

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"podstarter/k8sexec/verdict"
	"podstarter/payload"
)

// maxFileUsers is how many leases without a container there may be at a time: as many users
// more than the containers have.
const maxFileUsers = 64

// userLease implements payload.Lease for files only: a user of whom no process runs, or, without
// root, the pilot's.
type userLease struct {
	backend  *Backend
	uid, gid int
	private  *os.Root // nil when released
	lock     *os.File // nil without root
}

// leaseUser takes the first free user after those of the payload containers. It owns private
// from then on.
func (b *Backend) leaseUser(ctx context.Context, private *os.Root) (payload.Lease, error) {
	failed := func(err error) (payload.Lease, error) {
		_ = private.Close()
		return nil, verdict.Of(err)
	}
	if !b.self.IsRoot() { // it has one user, and keeps common files where no payload container sees them
		return &userLease{backend: b, uid: b.self.UID, gid: b.self.GID, private: private}, nil
	}
	for i := range maxFileUsers {
		uid := b.opt.BaseUID + len(b.opt.Containers) + i
		lock, err := tryLock(private, fmt.Sprintf("files.%d", i))
		if err != nil {
			return failed(&verdict.Failure{Origin: verdict.FromPilot, Reason: verdict.ReasonPrivateDir, Err: err})
		}
		if lock == nil {
			continue
		}
		l := &userLease{backend: b, uid: uid, gid: uid, private: private, lock: lock}
		b.log.Debug("leased a user for files", "uid", uid)
		// What a starter that was killed left may still write to files.
		if err := b.endUser(ctx, uid); err != nil {
			if ctx.Err() == nil {
				err = &payload.Verdict{Blame: payload.Unknown, Message: fmt.Sprintf("what an earlier data slot left running as user %d does not end, so that user gets no common files", uid), Err: err}
			}
			return nil, errors.Join(err, l.Release(ctx))
		}
		return l, nil
	}
	return failed(&payload.Verdict{Blame: payload.Unknown, Message: fmt.Sprintf("all %d users for common files are in use: the pod has as many data slots", maxFileUsers)})
}

// Owner implements payload.Lease.
func (l *userLease) Owner() (uid, gid int) { return l.uid, l.gid }

// Bind implements payload.Lease. There is no container.
func (l *userLease) Bind(context.Context, payload.BindRequest) (payload.Container, error) {
	return nil, errors.New("bind an image: the lease is for files only")
}

// Release implements payload.Lease.
func (l *userLease) Release(context.Context) error {
	if l.private == nil {
		return nil
	}
	private := l.private
	l.private = nil
	if l.lock == nil {
		return private.Close()
	}
	return errors.Join(unix.Flock(int(l.lock.Fd()), unix.LOCK_UN), l.lock.Close(), private.Close())
}
