package payloadrun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/rescue"
	"podstarter/starter/failure"
	"podstarter/starter/orders"
)

// Streams are the standard files of one run that are copied through the shadow
// while the job runs (condor_starter.V6.1/stream_handler.cpp). The payload has one
// end of a pipe for each. A payload that writes more than the shadow takes waits
// for it; nothing that it does with its end makes the starter wait. Nothing that it
// leaves behind keeps a pipe open: once its processes are gone, the pipe ends with
// what is in it then.
type Streams struct {
	log    *slog.Logger
	ctx    context.Context // of those that copy
	cancel context.CancelFunc
	pumps  []*pump
	passed []*os.File // the payload's ends, until it has them
	failed chan error // of a pump; what it means to the job
	done   rescue.Group
}

// pump copies one standard file.
type pump struct {
	name   string // as the wrapper calls it
	output bool
	stream *shadow.Stream
	pipe   *pipeEnd
}

// StreamShadow opens files of the submit side.
type StreamShadow interface {
	OpenOutput(ctx context.Context, name string, more bool) (*shadow.Stream, error)
	OpenInput(ctx context.Context, name string) (*shadow.Stream, error)
}

// OpenStreams opens the files on the submit side that the job wants streamed and makes the
// pipes. The files that it returns are to be passed to the payload. What an earlier run,
// before a checkpoint, has left in its pipes must have been drained; processes that it has
// left can no longer write to anybody.
func (j *Job) OpenStreams(ctx context.Context, sh StreamShadow, spec *payload.Spec) (*Streams, []*os.File, error) {
	stdio := job.StdioOf(j.Ad, j.Place())
	s := &Streams{log: j.Log, failed: make(chan error, 3)}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	open := func(name string, file job.File, output bool) error {
		var stream *shadow.Stream
		var err error
		code, phrase, direction := shadow.HoldUnableToOpenInputStream, "standard input", "from"
		if output {
			code, phrase, direction = shadow.HoldUnableToOpenOutputStream, "standard output", "to"
			if name == payload.Stderr {
				phrase = "standard error"
			}
			stream, err = sh.OpenOutput(ctx, file.Path, stdio.Append)
		} else {
			stream, err = sh.OpenInput(ctx, file.Path)
		}
		if errors.Is(err, shadow.ErrLost) || ctx.Err() != nil {
			return err
		}
		if err != nil {
			return failure.New(code, 0, fmt.Errorf("unable to establish %s stream: %w", phrase, err))
		}
		keep, give, err := payload.Pipe(output, spec.UID, spec.GID)
		if err != nil {
			return failure.New(code, 0, fmt.Errorf("unable to establish %s stream: %w", phrase, err))
		}
		j.Log.Info(fmt.Sprintf("%s: streaming %s remote file %s", job.StdLabel(name), direction, file.Path))
		s.pumps = append(s.pumps, &pump{name: name, output: output, stream: stream, pipe: &pipeEnd{File: keep, left: -1}})
		s.pass(spec, name, give)
		return nil
	}
	var err error
	if stdio.In.Stream {
		err = open(payload.Stdin, stdio.In, false)
	} else {
		err = j.passHidden(s, spec, payload.Stdin, &spec.Stdin)
	}
	same := spec.Stderr != "" && spec.Stderr == spec.Stdout
	switch {
	case err != nil:
	case stdio.Out.Stream:
		err = open(payload.Stdout, stdio.Out, true)
	default:
		err = j.passHidden(s, spec, payload.Stdout, &spec.Stdout)
	}
	switch {
	case err != nil:
	case same && spec.Stdout == "": // it was hidden
		spec.Stderr = ""
		s.pass(spec, payload.Stderr, s.passed[len(s.passed)-1])
	case !stdio.Err.Stream:
		err = j.passHidden(s, spec, payload.Stderr, &spec.Stderr)
	case stdio.Out == stdio.Err:
		// One pipe, so that neither overwrites the other.
		s.pass(spec, payload.Stderr, s.passed[len(s.passed)-1])
	default:
		err = open(payload.Stderr, stdio.Err, true)
	}
	return s, s.passed, err
}

func (s *Streams) pass(spec *payload.Spec, name string, file *os.File) {
	spec.Passed = append(spec.Passed, name)
	s.passed = append(s.passed, file)
}

// release closes the payload's ends.
func (s *Streams) release() {
	for _, f := range s.passed {
		f.Close() // the second time of one that was passed twice fails
	}
	s.passed = nil
}

// Begin starts copying, when the payload has its ends.
func (s *Streams) Begin() {
	s.release()
	for _, p := range s.pumps {
		s.done.Go(func() {
			defer p.pipe.Close()
			err := p.copy(s.ctx)
			switch {
			case err == nil:
			case errors.Is(err, shadow.ErrLost), s.ctx.Err() != nil:
				s.log.Warn("A standard file is not streamed to its end", "stream", p.name, "error", err)
			default:
				s.failed <- p.failure(err)
			}
		})
	}
}

func (p *pump) copy(ctx context.Context) error {
	if p.output {
		return p.stream.CopyOutput(ctx, p.pipe)
	}
	return p.stream.CopyInput(ctx, p.pipe)
}

// failure is the hold of a job for which a file of the submit side can no
// longer be read or written.
func (p *pump) failure(err error) error {
	code := shadow.HoldUnableToOpenInputStream
	if p.output {
		code = shadow.HoldUnableToOpenOutputStream
	}
	subcode := 0
	if refusal := (*shadow.CallError)(nil); errors.As(err, &refusal) {
		subcode = int(refusal.Errno)
	}
	return failure.New(code, subcode, fmt.Errorf("StreamHandler: %s: %w", p.name, err))
}

// Failure tells of a pump that failed; it blocks for ever without streams.
func (s *Streams) Failure() <-chan error {
	if s == nil {
		return nil
	}
	return s.failed
}

// Drain copies what the payload, whose processes have ended, has left in the
// pipes, until a demand allows no delay.
func (s *Streams) Drain(ctx context.Context, o *orders.Orders) error {
	if s == nil {
		return nil
	}
	ctx, release := o.UntilHard(ctx)
	defer release()
	for _, p := range s.pumps {
		p.pipe.end()
	}
	done := make(chan struct{})
	rescue.Go(func() {
		s.done.Wait()
		close(done)
	})
	select {
	case <-done:
	case <-ctx.Done():
	}
	s.cancel()
	select {
	case err := <-s.failed:
		return err
	default:
		return nil
	}
}

// Close gives up whatever is not copied yet.
func (s *Streams) Close() {
	if s == nil {
		return
	}
	s.cancel()
	s.release()
	for _, p := range s.pumps {
		p.pipe.end()
		p.pipe.Close()
	}
}

// pipeEnd is the starter's end of a pipe to the payload.
type pipeEnd struct {
	*os.File
	left int // bytes to be read after end; -1 before
}

// end says that the payload's processes are gone. What they have written can be
// read, and then comes the end of the file, whoever may still hold the other end:
// a job can hand it to another one's process.
func (p *pipeEnd) end() { _ = p.SetDeadline(time.Unix(1, 0)) }

// Read implements io.Reader.
func (p *pipeEnd) Read(b []byte) (int, error) {
	if p.left < 0 {
		n, err := p.File.Read(b)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
	}
	return p.readRest(b)
}

// readRest reads what was in the pipe when it was called first.
func (p *pipeEnd) readRest(b []byte) (int, error) {
	raw, err := p.SyscallConn()
	if err != nil {
		return 0, err
	}
	var n int
	var failure error
	err = raw.Control(func(fd uintptr) {
		if p.left < 0 {
			if p.left, failure = unix.IoctlGetInt(int(fd), unix.TIOCINQ); failure != nil {
				return
			}
		}
		if p.left == 0 {
			return
		}
		n, failure = unix.Read(int(fd), b[:min(len(b), p.left)])
		p.left -= max(n, 0)
	})
	switch {
	case err != nil:
		return 0, err
	case errors.Is(failure, syscall.EAGAIN), failure == nil && n <= 0:
		return 0, io.EOF
	}
	return max(n, 0), failure
}
