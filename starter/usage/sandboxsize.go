package usage

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"podstarter/condor/job"
	"podstarter/rescue"
	"podstarter/sandbox/beneath"
)

// How long it may take to measure a sandbox. Nobody waits for this while the job
// runs; after its end, the output waits, and then the claim.
const (
	patientTime = 5 * time.Minute
	hastyTime   = 3 * time.Second
)

// Sandbox is what is measured.
type Sandbox interface {
	// Usage returns a lower bound together with an error that wraps
	// [beneath.ErrIncomplete] if ctx ends first.
	Usage(ctx context.Context) (kib, files int64, err error)
	// ModTime is when a file below the scratch directory was last written to.
	ModTime(name string) (time.Time, error)
}

// SandboxSize measures a sandbox, which may have any number of files: if time runs
// out, it reports the largest size so far, as a lower bound. Its methods may be
// called from several goroutines.
type SandboxSize struct {
	log *slog.Logger

	// mu guards what follows; it is not held while the sandbox is measured.
	mu      sync.Mutex
	last    job.Sandbox   // the last whole size, or the largest of what was measured in part since
	whole   bool          // last is all of it
	hasty   chan struct{} // closed when nobody may wait any more
	closed  bool          // hasty is closed
	settled bool          // last was measured after the end: nobody adds to the sandbox then
}

// NewSandboxSize is the size of a sandbox that nobody has measured.
func NewSandboxSize(log *slog.Logger) *SandboxSize {
	return &SandboxSize{log: log, hasty: make(chan struct{})}
}

// Hurry cuts measuring short, now and from now on.
func (s *SandboxSize) Hurry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.hasty)
	}
}

// Calm lets measuring take its time again, for another run of the job.
func (s *SandboxSize) Calm() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		s.closed, s.settled, s.hasty = false, false, make(chan struct{})
	}
}

// Measure is what updates say of the sandbox.
func (s *SandboxSize) Measure(ctx context.Context, box Sandbox) *job.Sandbox {
	size, whole, err := s.weigh(ctx, box.Usage)
	if err != nil {
		s.log.Warn("The sandbox cannot be measured", "error", err)
	} else if !whole {
		s.log.Info("The size of the sandbox is a lower bound, it has too many files to be measured in time", "files", size.Files)
	}
	size.Stdout, _ = box.ModTime(job.StdoutFile) // no such file is no time
	size.Stderr, _ = box.ModTime(job.StderrFile)
	return &size
}

// weigh measures with measure, which is Sandbox.Usage. whole is false if the result
// is a lower bound.
func (s *SandboxSize) weigh(ctx context.Context, measure func(context.Context) (kib, files int64, err error)) (size job.Sandbox, whole bool, err error) {
	s.mu.Lock()
	hasty, patience := s.hasty, patientTime
	if s.closed {
		hasty, patience = nil, hastyTime
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
