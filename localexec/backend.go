package localexec

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"podstarter/payload"
	"podstarter/payload/procfamily"
)

// Options say where and as whom payloads run.
type Options struct {
	// Dir is where control directories and locks are kept. All starters of a
	// machine that share user IDs must share it. It is made with mode 0700 if it
	// does not exist.
	Dir string
	// UID is the first user ID for payloads, Users how many there are from there
	// on; the group ID is the same. Each lease takes one. They must be above 0
	// if this process is root, and mean nothing otherwise.
	UID, Users int
	// Program is the file to run as the wrapper; "" is this program.
	Program string
	// Log gets the wrapper's words, at level debug; nil for none.
	Log *slog.Logger
}

// backend implements payload.Backend: it runs wrappers beside this process.
type backend struct {
	dir     string
	uid     int
	users   int
	program string
	log     *slog.Logger
	root    bool
}

// self is this program, whatever has become of its file since it was started.
const self = "/proc/self/exe"

// New makes a backend that runs wrappers beside this process. Its errors are
// mistakes in the options.
func New(o Options) (payload.Backend, error) {
	b := &backend{dir: o.Dir, uid: o.UID, users: o.Users, program: o.Program, log: o.Log, root: os.Geteuid() == 0}
	if b.program == "" {
		b.program = self
	}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	if b.root && (o.UID <= 0 || o.Users <= 0) {
		return nil, fmt.Errorf("run payloads beside the starter: %d user IDs from %d on are not usable; both numbers must be above 0", o.Users, o.UID)
	}
	if !filepath.IsAbs(o.Dir) {
		return nil, fmt.Errorf("run payloads beside the starter: directory %q for control files is not an absolute path", o.Dir)
	}
	//nolint:forbidigo // the site's own directory, closed to payloads
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory for control files: %w", err)
	}
	return b, nil
}

// Check implements payload.Backend. New has found all the mistakes there can be.
func (b *backend) Check(context.Context) ([]string, error) { return nil, nil }

// Audit implements payload.Backend.
func (b *backend) Audit(context.Context) []payload.Finding {
	return []payload.Finding{{Grade: payload.OK, What: "payloads", Detail: "run beside the starter, without a choice of image"}}
}

// Lease implements payload.Backend. It takes a user ID for one activation. If all are taken, the error is
// [ErrNoUser]: there are more slots than user IDs.
func (b *backend) Lease(ctx context.Context) (payload.Lease, error) {
	if !b.root {
		return &lease{backend: b, uid: os.Geteuid(), gid: os.Getegid()}, nil
	}
	uid, lock, err := b.takeUser(ctx)
	if err != nil {
		return nil, err
	}
	l := &lease{backend: b, uid: uid, gid: uid, lock: lock}
	if err := l.killLeftovers(ctx); err != nil {
		return nil, errors.Join(err, l.Release(ctx))
	}
	return l, nil
}

// ErrNoUser says that all user IDs for payloads are taken.
var ErrNoUser = errors.New("all user IDs for payloads are in use")

// killLeftovers kills what an earlier payload of this user has left because its
// wrapper was killed.
func (l *lease) killLeftovers(ctx context.Context) error {
	killer, err := procfamily.NewKiller()
	if err != nil {
		return err
	}
	defer killer.Close()
	return procfamily.OfUser("/proc", l.uid).Kill(ctx, killer)
}
