package localexec

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"podstarter/localexec/group"
	"podstarter/payload"
)

// lease implements payload.Lease: a user ID that belongs to one activation.
type lease struct {
	backend   *Backend
	uid, gid  int
	lock      *os.File // nil without root
	container *container
	dir       string       // control directory, "" before Bind
	group     *group.Group // of the payload; nil before Bind, and where none can be made
	place     *group.Place // of that
	filesOnly bool
	released  bool
}

// Owner implements payload.Lease. It gives the user and group of the payload.
func (l *lease) Owner() (uid, gid int) { return l.uid, l.gid }

// Bind implements payload.Lease. It starts a wrapper. It refuses a request for an image
// with a *[payload.Verdict] that blames the user.
func (l *lease) Bind(ctx context.Context, req payload.BindRequest) (payload.Container, error) {
	if err := l.prepare(ctx, req); err != nil {
		return nil, err
	}
	if req.OwnProcesses {
		c, err := l.bindInNamespace(ctx)
		if err == nil || !errors.Is(err, errNoNamespace) {
			return c, err
		}
		l.backend.log.Warn("The job sees the processes of the machine", "error", err)
	}
	return l.bind(ctx, false)
}

// prepare checks a request and makes the control directory.
func (l *lease) prepare(ctx context.Context, req payload.BindRequest) error {
	if l.filesOnly {
		return errors.New("start a wrapper: the lease is for files only")
	}
	if image := strings.TrimSpace(req.Image); image != "" {
		return &payload.Verdict{
			Blame:   payload.User,
			Message: fmt.Sprintf("this execution point runs jobs without containers and cannot provide the image %.200q; submit the job without an image, or require an execution point that has containers", image),
		}
	}
	if !payload.ValidActivation(req.Activation) {
		return fmt.Errorf("start a wrapper: %.40q is not a valid activation name", req.Activation)
	}
	if l.released || l.container != nil {
		return fmt.Errorf("start a wrapper for %s: the lease already has one, or was released", req.Activation)
	}
	l.dir = filepath.Join(l.backend.dir, req.Activation)
	if err := l.giveDirectory(); err != nil {
		return siteTrouble("cannot make a control directory", err)
	}
	return l.makeGroup(ctx, req.Group)
}

// bind starts the wrapper and waits until it answers.
func (l *lease) bind(ctx context.Context, ownProcesses bool) (payload.Container, error) {
	p, err := startWrapper(l, rand.Text(), ownProcesses)
	if err != nil {
		if ownProcesses {
			err = fmt.Errorf("%w: %w", errNoNamespace, err)
		}
		return nil, siteTrouble("cannot start the wrapper", err)
	}
	// The wrapper may end instead of announcing itself.
	outer := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(p.ended, func() { cancel(context.Cause(p.ended)) })
	defer stop()
	client, err := payload.Dial(ctx, payload.Options{Dir: l.dir, Nonce: p.nonce, User: l.wrapperUser(), Log: l.backend.log})
	if err != nil {
		p.kill()
		if outer.Err() != nil {
			return nil, context.Cause(outer)
		}
		return nil, siteTrouble("the wrapper does not answer", noNamespace(p, err))
	}
	l.container = newContainer(client, p)
	return l.container, nil
}

func siteTrouble(what string, err error) error {
	return &payload.Verdict{Blame: payload.Site, Message: what + "; see its last output in the starter's log", Err: err}
}

// Release implements payload.Lease. It ends the wrapper, which kills the rest of the
// payload, and gives the user ID back.
func (l *lease) Release(ctx context.Context) error {
	l.released = true
	var errs []error
	if l.container != nil {
		errs = append(errs, l.container.end(ctx))
		l.container = nil
	}
	errs = append(errs, l.removeGroup(ctx))
	if l.lock != nil {
		errs = append(errs, l.killLeftovers(ctx))
		errs = append(errs, freeUser(l.lock, errors.Join(errs...) == nil))
		l.lock = nil
	}
	if l.dir != "" {
		//nolint:forbidigo // below the private directory, closed to payloads
		errs = append(errs, os.RemoveAll(l.dir))
		l.dir = ""
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("end the wrapper: %w", err)
	}
	return nil
}

// giveDirectory makes the control directory for a wrapper that is another user. The directory above stays this process's, so
// that nobody can put a link in its place.
func (l *lease) giveDirectory() error {
	as := l.backend.as
	if as == nil {
		return nil // the wrapper makes it
	}
	if err := os.Mkdir(l.dir, 0o700); err != nil {
		return err
	}
	//nolint:forbidigo // just made, in a directory that only this process may change
	return os.Chown(l.dir, as.UID, as.GID)
}

// wrapperUser is who the wrapper runs as; 0 for root, or this process's own user.
func (l *lease) wrapperUser() int {
	if l.backend.as == nil {
		return 0
	}
	return l.backend.as.UID
}
