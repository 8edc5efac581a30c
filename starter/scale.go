package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"podstarter/condor/job"
	"podstarter/rescue"
	"podstarter/sandbox/beneath"
)

// How long the measuring of a sandbox may take: nobody waits for a running
// job's, but an ended job's output waits, and then the claim.
const (
	patientScale = 5 * time.Minute
	briskScale   = 3 * time.Second
)

// scale measures the sandbox, which may have any number of files: whoever
// cannot wait gets what is known by then, and it never goes back for that.
type scale struct {
	mu      sync.Mutex
	last    job.Sandbox   // largest of what was measured in part since, and of all the last time
	whole   bool          // last is all of it
	hasty   chan struct{} // closed when nobody may wait any more
	closed  bool
	settled bool // last was measured after that: nobody adds to an ended job's sandbox
}

func newScale() *scale { return &scale{hasty: make(chan struct{})} }

// hurry cuts measuring short, now and from now on.
func (s *scale) hurry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.hasty)
	}
}

// calm allows for patience again, for another run of the job.
func (s *scale) calm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		s.closed, s.settled, s.hasty = false, false, make(chan struct{})
	}
}

// weigh measures with measure, which returns a lower bound and an error that
// wraps [beneath.ErrIncomplete] when its context ends first. whole is false if
// the result is one.
func (s *scale) weigh(ctx context.Context, measure func(context.Context) (kib, files int64, err error)) (size job.Sandbox, whole bool, err error) {
	s.mu.Lock()
	hasty, patience := s.hasty, patientScale
	if s.closed {
		hasty, patience = nil, briskScale
	}
	if s.settled {
		defer s.mu.Unlock()
		return s.last, s.whole, nil
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	watched := make(chan struct{})
	defer close(watched)
	rescue.Go(func() {
		select {
		case <-hasty:
			cancel()
		case <-watched:
		}
	})
	kib, files, err := measure(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	size = job.Sandbox{Bytes: kib * 1024, Files: files}
	s.whole = err == nil
	switch {
	case s.whole:
		s.last, s.settled = size, hasty == nil
		return size, true, nil
	case errors.Is(err, beneath.ErrIncomplete):
		err, s.settled = nil, hasty == nil
	}
	s.last = job.Sandbox{Bytes: max(s.last.Bytes, size.Bytes), Files: max(s.last.Files, size.Files)}
	return s.last, false, err
}

// measureSandbox is what updates say of the sandbox.
func (a *activation) measureSandbox(ctx context.Context) *job.Sandbox {
	size, whole, err := a.scale.weigh(ctx, a.sandbox.Usage)
	if err != nil {
		a.log.Warn("The sandbox cannot be measured", "error", err)
	} else if !whole {
		a.log.Info("The size of the sandbox is a lower bound, it has too many files to be measured in time", "files", size.Files)
	}
	size.Stdout, _ = a.sandbox.ModTime(job.StdoutFile) // no such file is no time
	size.Stderr, _ = a.sandbox.ModTime(job.StderrFile)
	return &size
}
