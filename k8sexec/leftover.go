package k8sexec

import (
	"context"
	"errors"
	"fmt"

	"github.com/hashicorp/go-multierror"

	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/privatedir"
	"podstarter/k8sexec/verdict"
	"podstarter/payload"
)

// ResetLeftovers ends what an earlier pilot process left in the payload containers:
// where a starter died with its job, the container gets its default image and a fresh
// nonce, which ends everything in it. It does not touch containers that a starter has
// leased at this moment, nor those that their last starter gave back: their payload was
// swept away before, and the next binding makes them anew in any case. It does not wait
// for the new container; the next lease does, for its own.
//
// Errors are one *payload.Verdict for each container that could not be reset; the next
// binding then resets it.
func (b *Backend) ResetLeftovers(ctx context.Context) error {
	var problems *multierror.Error
	for i, name := range b.opt.Containers {
		if err := b.resetLeftover(ctx, i); err != nil {
			problems = multierror.Append(problems, fmt.Errorf("reset container %s: %w", name, err))
		}
	}
	return problems.ErrorOrNil()
}

func (b *Backend) resetLeftover(ctx context.Context, index int) error {
	private, err := privatedir.Open(b.opt.PrivateDir)
	if err != nil {
		return verdict.Of(&verdict.Failure{Origin: verdict.FromPilot, Reason: verdict.ReasonPrivateDir, Err: err})
	}
	l, err := b.leaseOf(private, index)
	if l == nil { // leased, or an error
		_ = private.Close()
		if err != nil {
			err = verdict.Of(&verdict.Failure{Origin: verdict.FromPilot, Reason: verdict.ReasonPrivateDir, Err: err})
		}
		return err
	}
	err = l.resetLeftover(ctx)
	return errors.Join(err, l.Release(ctx))
}

func (l *lease) resetLeftover(ctx context.Context) error {
	b := l.backend
	known, err := readSlot(l.private, l.name)
	if err != nil {
		b.log.Warn("cannot read what is known of the payload container", "container", l.name, "error", err)
	}
	if !known.InUse {
		return nil
	}
	_, err = l.reset(ctx, known, true)
	return verdict.Of(err)
}

// reset gives the container its default image and a fresh nonce, by which the new one
// is known, and tells the old wrapper to leave. settled says that nobody waits for
// that: the container counts as given back, and the next lease makes sure that the old
// one has ended.
func (l *lease) reset(ctx context.Context, known slot, settled bool) (nonce string, err error) {
	b := l.backend
	before, nonce := known, podapi.NewNonce()
	p, err := l.choose(ctx, payload.BindRequest{Activation: "reset"}, nonce, &known)
	if err != nil {
		return "", err
	}
	known = known.unbound()
	l.note(known) // from here on the pod may be changed although this process dies
	pod, err := l.patch(ctx, p.binding(l.name, nonce, known))
	if err != nil {
		return "", err
	}
	known.InUse, known.Unproven, known.PodUID = !settled, settled, string(pod.UID)
	if spec := podapi.SpecOf(pod, l.name); spec != nil {
		known.Spec = spec.Image
	}
	l.note(known)
	// The wrapper killed the payload when its starter died. If it did not, the payload
	// ends with the wrapper.
	if err := l.dismissOnce(ctx, nonce, before.Nonce); err != nil {
		b.log.Debug("the old wrapper could not be told to leave, the kubelet ends it", "container", l.name, "error", err)
	}
	b.log.Info("ended what an earlier starter left behind", "container", l.name, "image", known.Spec)
	return nonce, nil
}
