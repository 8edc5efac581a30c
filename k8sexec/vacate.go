package k8sexec

import (
	"context"
	"errors"
	"fmt"
	"time"

	"podstarter/k8sexec/verdict"
	"podstarter/payload"
	"podstarter/payload/procfamily"
)

// vacate proves that no process of the container's user is alive. The next job gets its
// sandbox, with its tokens, before its container: a payload that outlives its starter,
// even just until its wrapper notices, would be allowed to read them.
//
//   - This process kills what it sees: in all of the pod, if that shares its process
//     namespace, else the plugins of a starter that was killed. That is one system call
//     and one look.
//   - A container that its last starter gave back was swept before.
//   - For a container that was not given back, the wrapper decides: it serves nobody
//     while a process of its last payload is alive. If it does not answer, the
//     container is made anew: when the new wrapper answers, the kernel has ended
//     everything in the old container.
func (l *lease) vacate(ctx context.Context) error {
	if err := l.killVisible(ctx); err != nil {
		return err
	}
	known, err := readSlot(l.private, l.name)
	if err == nil && !known.InUse && !known.Unproven {
		return nil
	}
	b := l.backend
	b.log.Info("the last starter of this payload container did not give it back", "container", l.name)
	if err := l.awaitIdle(ctx, ""); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		b.log.Warn("the wrapper does not confirm that the last job has ended, making a new container", "container", l.name, "error", err)
		if err := l.replace(ctx, known); err != nil {
			return err
		}
	}
	// A launcher that was root at the first look is dead by now, or has become the
	// payload's user.
	if err := l.killVisible(ctx); err != nil {
		return err
	}
	if known, err = readSlot(l.private, l.name); err == nil {
		known.InUse, known.Unproven = false, false
		l.note(known)
	}
	return nil
}

// killVisible ends all processes of the container's user that it sees.
func (l *lease) killVisible(ctx context.Context) error {
	if !l.backend.self.IsRoot() {
		return nil // the payload has this process's user, and is not in its namespace
	}
	uid, _ := l.Owner()
	return l.backend.endUser(ctx, uid)
}

// endUser ends all processes of a user that this process sees.
func (b *Backend) endUser(ctx context.Context, uid int) error {
	ctx, cancel := context.WithTimeoutCause(ctx, b.timing.kill, errKill)
	defer cancel()
	if err := b.killUser(ctx, uid); err != nil {
		if errors.Is(err, errKill) || ctx.Err() == nil {
			return &verdict.Failure{Origin: verdict.FromPilot, Reason: verdict.ReasonStillAlive, Message: fmt.Sprintf("user %d: %v", uid, err), Err: err}
		}
		return context.Cause(ctx)
	}
	return nil
}

// errKill is the cause of ending a kill that took too long.
var errKill = errors.New("its processes do not die")

// killUser kills every process of a user in this process namespace and proves that
// none is left.
func killUser(ctx context.Context, uid int) error {
	killer, err := procfamily.NewKiller()
	if err != nil {
		return err
	}
	defer killer.Close()
	return procfamily.OfUser("/proc", uid).Kill(ctx, killer)
}

// awaitIdle waits until the wrapper accepts a connection: it accepts none while a
// process of its payload is alive. A nonce selects the wrapper; empty for any.
func (l *lease) awaitIdle(ctx context.Context, nonce string) error {
	b := l.backend
	limit := b.timing.idle
	if nonce != "" {
		limit = b.opt.BindTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	client, err := payload.Dial(ctx, payload.Options{Dir: l.controlDir(), Nonce: nonce, Log: b.log})
	if err != nil {
		return err
	}
	return client.Close()
}

// replace gives the container its default image and waits for the wrapper of the new
// one.
func (l *lease) replace(ctx context.Context, known slot) error {
	begin := time.Now()
	nonce, err := l.reset(ctx, known, false)
	if err != nil {
		return err
	}
	if err := l.awaitIdle(ctx, nonce); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return &verdict.Failure{Origin: verdict.FromPilot, Reason: verdict.ReasonStillAlive, Message: err.Error(), Err: err}
	}
	l.backend.log.Info("a new payload container took the last one's place", "container", l.name, "took", time.Since(begin))
	return nil
}
