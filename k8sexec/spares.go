package k8sexec

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"podstarter/internal/filewatch"
	"podstarter/k8sexec/jointpatch"
	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/privatedir"
	"podstarter/rescue"
)

// restockLock is held by the one starter of the pod that makes containers ahead.
const restockLock = "restock.lock"

// lastWords is how long a call may go on whose job has ended: a patch that is broken off
// may have been carried out, and then the container's state is not known.
const lastWords = 500 * time.Millisecond

// Restock implements payload.Backend. Where the pod has spares, it makes new what jobs
// have used, with the images that the next jobs will probably want: several containers by
// one patch, and no more before the kubelet has finished with these. One starter at a time
// does that for all; it looks again before it leaves.
func (b *Backend) Restock(ctx context.Context) {
	if b.opt.Spares == 0 {
		return
	}
	private, err := privatedir.Open(b.opt.PrivateDir)
	if err != nil {
		return // the next lease says so
	}
	defer private.Close()
	for again := true; again && ctx.Err() == nil; {
		lock, err := tryLock(private, restockLock)
		if lock == nil {
			if err != nil {
				b.log.Warn("cannot make payload containers ahead", "error", err)
			}
			return
		}
		err = b.restock(ctx, private)
		_ = lock.Close()
		if err != nil {
			b.log.Warn("cannot make payload containers ahead; jobs wait for them instead", "error", err)
			return
		}
		// Whoever found the lock taken relies on this look.
		s := b.takeStock(private)
		again = len(s.chosen) > 0
		s.giveBack()
	}
}

// restock makes containers ahead until none is left to do.
func (b *Backend) restock(ctx context.Context, private *os.Root) error {
	for ctx.Err() == nil {
		s := b.takeStock(private)
		if len(s.chosen) == 0 {
			return nil
		}
		err := b.makeAhead(ctx, s.chosen)
		s.giveBack()
		if err != nil {
			return err
		}
		b.awaitAnnounced(ctx, s.chosen)
	}
	return nil
}

// makeAhead binds the chosen containers, whose leases it has, by one patch. It keeps what
// is known of them up to date, on disk as well.
func (b *Backend) makeAhead(ctx context.Context, chosen []*spare) error {
	ctx, cancel := b.soon(ctx)
	defer cancel()
	api, err := b.connect()
	if err != nil {
		return err
	}
	if err := b.surveyAll(ctx, api, chosen); err != nil {
		return err
	}
	atRest := chosen[0].lease.isAtRest(chosen[0].known)
	bindings := make([]podapi.Binding, len(chosen))
	for i, s := range chosen {
		bindings[i] = s.plan.binding(s.lease.name, s.nonce, s.known)
		// From here on the pod may be changed even if this process dies.
		trying := s.known.unbound()
		trying.Ahead = true
		if err := trying.write(s.lease.private, s.lease.name); err != nil {
			return err
		}
	}
	began := time.Now()
	pod, err := jointpatch.Patch(ctx, chosen[0].lease.private, api, bindings...)
	if err != nil {
		return fmt.Errorf("patch %d payload containers: %w", len(chosen), err)
	}
	for _, s := range chosen {
		if atRest {
			s.dismiss()
		}
		s.made(pod, began)
	}
	return nil
}

// soon is a context for calls to the API server. It ends a little after ctx.
func (b *Backend) soon(ctx context.Context) (context.Context, context.CancelFunc) {
	calls, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.timing.restock)
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(lastWords, cancel) })
	return calls, func() {
		stop()
		cancel()
	}
}

// surveyAll finds out what the pod was created with, where that is not known yet.
func (b *Backend) surveyAll(ctx context.Context, api podapi.API, chosen []*spare) error {
	if !slices.ContainsFunc(chosen, func(s *spare) bool { return s.known.DefaultImage == "" }) {
		return nil
	}
	pod, err := api.Get(ctx)
	if err != nil {
		return fmt.Errorf("read the pod: %w", err)
	}
	for _, s := range chosen {
		if err := s.lease.survey(pod, &s.known); err != nil {
			return err
		}
		if pod.Annotations[podapi.DefaultImageAnnotation+s.lease.name] == "" {
			s.plan.record = s.known.DefaultImage
		}
	}
	return nil
}

// awaitAnnounced waits until the wrappers of all have put their sockets there, or the time
// for that is over. Old wrappers that the kubelet should have ended by then are told to leave.
func (b *Backend) awaitAnnounced(ctx context.Context, chosen []*spare) {
	ctx, cancel := context.WithTimeout(ctx, b.timing.ahead)
	defer cancel()
	watch, err := filewatch.New()
	if err != nil {
		b.log.Warn("cannot watch for payload containers that were made ahead", "error", err)
		return
	}
	defer rescue.Go(watch.Close) // see payload.Dial
	nudge := time.After(b.timing.nudge)
	for {
		chosen = slices.DeleteFunc(slices.Clone(chosen), func(s *spare) bool {
			// Without a watch the nudge finds it.
			_ = watch.Add(s.lease.controlDir(), filewatch.Placed|filewatch.Touched)
			return b.isAnnounced(s.lease.name, s.known)
		})
		if len(chosen) == 0 {
			return
		}
		select {
		case <-watch.Events():
		case <-nudge:
			nudge = nil
			for _, s := range chosen {
				s.dismiss()
			}
		case <-ctx.Done():
			return
		}
	}
}
