package localexec

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"podstarter/localexec/group"
	"podstarter/payload"
	"podstarter/payload/procfamily"
)

// Options say where payloads run, and as which users.
type Options struct {
	// Dir is where control directories and locks are kept. Starters of one machine that
	// share user IDs must share it. New makes it with mode 0700 if it does not exist.
	Dir string
	// UID is the first user ID for payloads, Users is how many there are; the group ID is
	// the same. Each lease takes one. Both must be above 0 if this process is root, and are
	// ignored otherwise.
	UID, Users int
	// As is the one user of all payloads, if they are to run as somebody who may have other processes and files on this
	// machine; nil if user IDs are for payloads alone. Wrapper and payload then run as that user, as without root: what is
	// killed is what descends from the wrapper, never what belongs to the user. Only for root, which can switch.
	As *Account
	// Mounts lets payloads have directories of their own in place of the machine's, by a mount namespace for each wrapper. It has no
	// effect without the rights for it, or with As.
	Mounts bool
	// Processes says that payloads are to have PID namespaces of their own, for Audit. Which payload has one is in the request.
	Processes bool
	// Groups says where payloads get control groups, if their requests ask for one. It has no effect with As.
	Groups group.Site
	// Program is the file to run as the wrapper; "" is this program.
	Program string
	// Runtime is the machine's runtime of images, for Audit and Probe.
	Runtime Runtime
	// Log gets the wrapper's output at level debug; nil for none.
	Log *slog.Logger
}

// Account is a user of the machine.
type Account struct {
	UID, GID int
	Groups   []int // supplementary groups
}

// Backend implements payload.Backend: it runs wrappers beside this process.
type Backend struct {
	dir     string
	uid     int
	users   int
	program string
	log     *slog.Logger
	root    bool // payloads have user IDs of their own
	as      *Account
	runtime Runtime
	mounts  bool // wrappers have mount namespaces of their own
	groups  group.Site
	capable bool // this process may make namespaces
	wanted  bool // payloads are to have PID namespaces
}

// self is this program, even if its file was replaced or removed since the start.
const self = "/proc/self/exe"

// New makes a backend that runs wrappers beside this process. An error means that the
// options are wrong.
func New(o Options) (*Backend, error) {
	b := &Backend{dir: o.Dir, uid: o.UID, users: o.Users, program: o.Program, log: o.Log, root: os.Geteuid() == 0, as: o.As, runtime: o.Runtime, groups: o.Groups}
	if b.program == "" {
		b.program = self
	}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	if b.as != nil {
		if !b.root || b.as.UID <= 0 || b.as.GID <= 0 {
			return nil, fmt.Errorf("run payloads beside the starter: only root can run them as user %d, group %d, and not as root", b.as.UID, b.as.GID)
		}
		b.root = false
	}
	b.capable = b.root && mayMount()
	b.mounts, b.wanted = o.Mounts && b.capable, o.Processes
	if b.root && (o.UID <= 0 || o.Users <= 0) {
		return nil, fmt.Errorf("run payloads beside the starter: cannot use %d user IDs from %d on; both numbers must be above 0", o.Users, o.UID)
	}
	if !filepath.IsAbs(o.Dir) {
		return nil, fmt.Errorf("run payloads beside the starter: directory %q for control files is not an absolute path", o.Dir)
	}
	mode := os.FileMode(0o700)
	if b.as != nil {
		mode = 0o755 // the user must come to a directory below it
	}
	//nolint:forbidigo // the site's own directory, closed to payloads
	if err := os.MkdirAll(o.Dir, mode); err != nil {
		return nil, fmt.Errorf("make directory for control files: %w", err)
	}
	return b, nil
}

// Check implements payload.Backend. New finds all possible mistakes.
func (b *Backend) Check(context.Context) ([]string, error) { return nil, nil }

// Audit implements payload.Backend.
func (b *Backend) Audit(ctx context.Context) []payload.Finding {
	return append([]payload.Finding{{Grade: payload.OK, What: "payloads", Detail: "run beside the starter"}}, slices.Concat(b.auditGroups(), b.auditProcesses(ctx), b.auditRuntime(ctx))...)
}

// Lease implements payload.Backend. It takes a user ID for one activation. If all are
// taken, since there are more slots than user IDs, the error is [ErrNoUser].
func (b *Backend) Lease(ctx context.Context, wish payload.Wish) (payload.Lease, error) {
	if b.as != nil {
		return &lease{backend: b, uid: b.as.UID, gid: b.as.GID, filesOnly: wish.FilesOnly}, nil
	}
	if !b.root {
		return &lease{backend: b, uid: os.Geteuid(), gid: os.Getegid(), filesOnly: wish.FilesOnly}, nil
	}
	first, n := b.usersFor(wish.FilesOnly)
	uid, lock, err := b.takeUser(ctx, first, n)
	if err != nil {
		return nil, err
	}
	l := &lease{backend: b, uid: uid, gid: uid, lock: lock, filesOnly: wish.FilesOnly}
	if err := l.killLeftovers(ctx); err != nil {
		return nil, errors.Join(err, l.Release(ctx))
	}
	return l, nil
}

// Restock implements payload.Backend. Payloads here need nothing made ahead.
func (b *Backend) Restock(context.Context) {}

// ErrNoUser says that all user IDs for payloads are taken.
var ErrNoUser = errors.New("all user IDs for payloads are in use")

// killLeftovers kills processes of an earlier payload of this user whose wrapper was
// killed.
func (l *lease) killLeftovers(ctx context.Context) error {
	killer, err := procfamily.NewKiller()
	if err != nil {
		return err
	}
	defer killer.Close()
	return procfamily.OfUser("/proc", l.uid).Kill(ctx, killer)
}

// mayMount tells whether this process has the right to mount (CAP_SYS_ADMIN), which root lacks in most containers.
func mayMount() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}
