package lives_test

import (
	"context"

	"podstarter/payload"
)

// double is a backend that does what one beside the starter cannot: fail in all ways that
// pods fail in. What is not set is as the real one has it.
type double struct {
	payload.Backend
	ending chan payload.Notice // of the container
	lost   chan error          // of the container
	lease  func() error        // fails a lease
	bind   func() error        // fails a binding
}

func (d *double) Lease(ctx context.Context) (payload.Lease, error) {
	if d.lease != nil {
		if err := d.lease(); err != nil {
			return nil, err
		}
	}
	l, err := d.Backend.Lease(ctx)
	return doubleLease{l, d}, err
}

type doubleLease struct {
	payload.Lease
	double *double
}

func (l doubleLease) Bind(ctx context.Context, req payload.BindRequest) (payload.Container, error) {
	if l.double.bind != nil {
		if err := l.double.bind(); err != nil {
			return nil, err
		}
	}
	c, err := l.Lease.Bind(ctx, req)
	return doubleContainer{c, l.double}, err
}

type doubleContainer struct {
	payload.Container
	double *double
}

func (c doubleContainer) Ending() <-chan payload.Notice { return c.double.ending }

func (c doubleContainer) Lost() <-chan error {
	if c.double.lost != nil {
		return c.double.lost
	}
	return c.Container.Lost()
}
