package k8sexec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/privatedir"
	"podstarter/payload"
)

// PodUID is the identity of the pilot's pod, which a later pod of its name does not have.
func (b *Backend) PodUID(ctx context.Context) (string, error) {
	var uid string
	err := b.pod.Call(ctx, "get", func(ctx context.Context, api podapi.API) error {
		pod, err := api.Get(ctx)
		if err == nil {
			uid = string(pod.UID)
		}
		return err
	})
	return uid, err
}

// Visit leases a payload container, which has its default image then, and calls visit with
// its wrapper and the user of its payloads. It waits for the container as long as ctx allows,
// and ends whatever visit has started. A container that no job has used since the pod was made
// stays as it is, and costs one GET; any other is made anew.
func (b *Backend) Visit(ctx context.Context, container string, visit func(ctx context.Context, w payload.Wrapper, uid, gid int) error) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("visit payload container %s: %w", container, err)
		}
	}()
	private, err := privatedir.Open(b.opt.PrivateDir)
	if err != nil {
		return err
	}
	l, err := b.waitForLeaseOf(ctx, private, container)
	if err != nil {
		_ = private.Close()
		return err
	}
	// Release gives the container back only if nothing of the visit is left.
	defer func() { err = errors.Join(err, l.Release(context.WithoutCancel(ctx))) }()
	if err := l.vacate(ctx); err != nil {
		return err
	}
	c, err := l.unused(ctx)
	if c == nil && err == nil {
		_, err = l.Bind(ctx, payload.BindRequest{Activation: "visit"})
		c = l.container
	}
	if err != nil {
		return err
	}
	uid, gid := l.Owner()
	err = visit(ctx, c.client, uid, gid)
	sweep, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.timing.kill)
	defer cancel()
	return errors.Join(err, c.client.Sweep(sweep))
}

// waitForLeaseOf waits until nobody else has the container.
func (b *Backend) waitForLeaseOf(ctx context.Context, private *os.Root, container string) (*lease, error) {
	index := slices.Index(b.opt.Containers, container)
	if index < 0 {
		return nil, fmt.Errorf("it is none of the payload containers %q", b.opt.Containers)
	}
	poll := time.NewTicker(b.timing.leasePoll)
	defer poll.Stop()
	for {
		if l, err := b.leaseOf(private, index); l != nil || err != nil {
			return l, err
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("a job has it: %w", context.Cause(ctx))
		}
	}
}

// unused connects to the wrapper of a container that is as the pod was made: nothing has been
// bound, as API server, slot and wrapper agree. It is nil if that is not so.
func (l *lease) unused(ctx context.Context) (*container, error) {
	known, err := readSlot(l.private, l.name)
	if err != nil || known != (slot{}) {
		return nil, nil
	}
	pod, err := l.get(ctx)
	if err != nil {
		return nil, err
	}
	if pod.Annotations[podapi.NonceAnnotation+l.name] != "" {
		return nil, nil
	}
	if err := l.survey(pod, &known); err != nil {
		return nil, err
	}
	img, err := l.wanted("", known)
	if err != nil {
		return nil, err
	}
	l.note(slot{InUse: true}) // if this process dies
	l.used = true
	client, err := payload.Dial(ctx, payload.Options{Dir: l.controlDir(), Log: l.backend.log})
	if err != nil {
		return nil, err
	}
	if client.Hello().Nonce != "" {
		_ = client.Close()
		return nil, nil
	}
	if err := l.backend.genuine(client, l.name, programOf(pod, l.name)); err != nil {
		_ = client.Close()
		return nil, err
	}
	c := newContainer(l, client, plan{image: img, spec: known.Spec}, known)
	l.hold(c)
	return c, nil
}
