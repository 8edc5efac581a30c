package usage

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/job"
	"podstarter/sandbox/beneath"
)

// TestSandboxSize: a sandbox that takes too long to measure keeps nobody waiting, and
// its size does not go back for that.
func TestSandboxSize(t *testing.T) {
	s := NewSandboxSize(slog.New(slog.DiscardHandler))
	ctx := t.Context()
	fixed := func(kib, files int64, err error) func(context.Context) (int64, int64, error) {
		return func(context.Context) (int64, int64, error) { return kib, files, err }
	}
	check := func(what string, measure func(context.Context) (int64, int64, error), want job.Sandbox, wantWhole bool) {
		t.Helper()
		size, whole, err := s.weigh(ctx, measure)
		if diff := cmp.Diff(want, size); diff != "" || whole != wantWhole || err != nil {
			t.Errorf("%s: whole %t, %v (-want +got):\n%s", what, whole, err, diff)
		}
	}
	check("measured", fixed(10, 3, nil), job.Sandbox{Bytes: 10 << 10, Files: 3}, true)
	check("in part", fixed(8, 5, beneath.ErrIncomplete), job.Sandbox{Bytes: 10 << 10, Files: 5}, false)
	check("shrunk", fixed(1, 1, nil), job.Sandbox{Bytes: 1 << 10, Files: 1}, true)

	// A measurement that would never end, when the job does.
	started := make(chan struct{})
	done := make(chan job.Sandbox, 1)
	endless := func(ctx context.Context) (int64, int64, error) {
		close(started)
		<-ctx.Done()
		return 7, 7, errors.Join(beneath.ErrIncomplete, context.Cause(ctx))
	}
	go func() {
		size, _, _ := s.weigh(ctx, endless)
		done <- size
	}()
	<-started
	s.Hurry()
	s.Hurry()
	if got, want := <-done, (job.Sandbox{Bytes: 7 << 10, Files: 7}); got != want {
		t.Errorf("cut short it is %+v, want %+v", got, want)
	}
	check("brisk", fixed(9, 9, beneath.ErrIncomplete), job.Sandbox{Bytes: 9 << 10, Files: 9}, false)
	again := func(context.Context) (int64, int64, error) {
		t.Error("measured again what cannot have changed")
		return 0, 0, nil
	}
	check("given up", again, job.Sandbox{Bytes: 9 << 10, Files: 9}, false)
	s.Calm()
	check("another run", fixed(2, 2, nil), job.Sandbox{Bytes: 2 << 10, Files: 2}, true)
	s.Hurry()
	check("its end", fixed(3, 3, nil), job.Sandbox{Bytes: 3 << 10, Files: 3}, true)
	check("after its end", again, job.Sandbox{Bytes: 3 << 10, Files: 3}, true)
	s.Calm()

	broken := errors.New("no such directory")
	if _, whole, err := s.weigh(ctx, fixed(0, 0, broken)); whole || !errors.Is(err, broken) {
		t.Errorf("whole %t, %v", whole, err)
	}
}

// fixedSandbox has a size, and a standard output but no standard error.
type fixedSandbox struct {
	kib, files int64
	err        error
	written    time.Time
}

func (b fixedSandbox) Usage(context.Context) (kib, files int64, err error) {
	return b.kib, b.files, b.err
}

func (b fixedSandbox) ModTime(name string) (time.Time, error) {
	if name == job.StdoutFile {
		return b.written, nil
	}
	return time.Time{}, fs.ErrNotExist
}

// TestMeasure: updates say how large the sandbox is and when the job last wrote to
// its standard files, and the log says what is wrong with that.
func TestMeasure(t *testing.T) {
	var said bytes.Buffer
	s := NewSandboxSize(slog.New(slog.NewTextHandler(&said, nil)))
	written := time.Unix(1000, 0)
	want := job.Sandbox{Bytes: 2 << 10, Files: 2, Stdout: written}
	for _, step := range []struct {
		err  error
		says string
	}{{nil, ""}, {beneath.ErrIncomplete, "is a lower bound"}, {errors.New("no such directory"), "cannot be measured"}} {
		said.Reset()
		if diff := cmp.Diff(want, *s.Measure(t.Context(), fixedSandbox{2, 2, step.err, written})); diff != "" {
			t.Errorf("%v (-want +got):\n%s", step.err, diff)
		}
		if got := said.String(); !strings.Contains(got, step.says) || (step.says == "") != (got == "") {
			t.Errorf("%v: the log says %q", step.err, got)
		}
	}
}
