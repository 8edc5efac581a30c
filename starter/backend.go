package main

import (
	"context"

	"podstarter/payload"
)

// Backend is a way to run payloads. The starter picks one when it starts and
// then knows nothing of where payloads live.
type Backend interface {
	// Lease takes a payload slot for this activation alone, so that its user
	// is known before any file is made. It is given back by Lease.Release,
	// or by the end of the process.
	Lease(ctx context.Context) (Lease, error)
}

// Lease is a payload slot that belongs to this activation.
type Lease interface {
	// Owner is the user and group of the slot's payload.
	Owner() (uid, gid int)
	// Bind makes the slot run the image and answers when a wrapper of that
	// very container has announced itself. The errors are *payload.Verdict
	// where it is known whose fault they are.
	Bind(ctx context.Context, req payload.BindRequest) (Container, error)
	// Release gives the slot back. What is left of the payload has been
	// swept away before.
	Release(ctx context.Context) error
}

// Container is a payload slot that runs the image that this activation asked
// for.
type Container interface {
	// Client talks to the slot's wrapper.
	Client() *payload.Client
	// Image is the image as it was bound, for the log.
	Image() string
	// Lost tells that the container ended or was made anew under the job,
	// and why.
	Lost() <-chan error
}
