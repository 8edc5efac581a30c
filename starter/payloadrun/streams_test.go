package payloadrun_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/condortest"
	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/starter/failure"
	"podstarter/starter/orders"
	"podstarter/starter/payloadrun"
)

// streaming is a job with standard files that are streamed to and from the shadow, and
// the spec of its main process.
func streaming(t *testing.T, attributes string) (*payloadrun.Job, *condortest.Shadow, *shadow.Client, *payload.Spec) {
	t.Helper()
	sh := condortest.NewShadow(t, condortest.ShadowOptions{Files: map[string]string{"in": "some input\n"}})
	client := shadow.New(sh.Connect(t), quiet)
	t.Cleanup(func() { client.Close() })
	iwd := sh.Job().StringOr("Iwd", "")
	return aJob(t, strings.ReplaceAll(attributes, "IWD", iwd), nil), sh, client, &payload.Spec{UID: os.Getuid(), GID: os.Getgid()}
}

const (
	streamIn  = `In = "IWD/in"` + "\nStreamIn = true\n"
	streamOut = `Out = "IWD/out"` + "\nStreamOut = true\n"
	streamErr = `Err = "IWD/err"` + "\nStreamErr = true\n"
	sameErr   = `Err = "IWD/out"` + "\nStreamErr = true\n"
)

// runWith runs a payload with its files, and starts to copy.
func runWith(t *testing.T, s *payloadrun.Streams, spec *payload.Spec, files []*os.File, script string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	for i, name := range spec.Passed {
		switch name {
		case payload.Stdin:
			cmd.Stdin = files[i]
		case payload.Stdout:
			cmd.Stdout = files[i]
		case payload.Stderr:
			cmd.Stderr = files[i]
		}
	}
	must(t, cmd.Start())
	s.Begin()
	return cmd
}

// TestStreams: what the payload reads and writes goes through the shadow while it runs.
func TestStreams(t *testing.T) {
	for name, tt := range map[string]struct {
		job, script string
		passed      []string
		files       map[string]string
	}{
		"all":        {streamIn + streamOut + streamErr, "cat; echo odd >&2", []string{"stdin", "stdout", "stderr"}, map[string]string{"out": "some input\n", "err": "odd\n"}},
		"two in one": {streamOut + sameErr, "echo even; echo odd >&2", []string{"stdout", "stderr"}, map[string]string{"out": "even\nodd\n"}},
		"errors":     {streamErr, "echo odd >&2", []string{"stderr"}, map[string]string{"err": "odd\n"}},
		"none":       {"", "true", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			j, sh, client, spec := streaming(t, tt.job)
			s, files, err := j.OpenStreams(t.Context(), client, spec)
			must(t, err)
			defer s.Close()
			if diff := cmp.Diff(tt.passed, spec.Passed); diff != "" || len(files) != len(spec.Passed) {
				t.Fatalf("%d files are passed (-want +got):\n%s", len(files), diff)
			}
			must(t, runWith(t, s, spec, files, tt.script).Wait())
			must(t, s.Drain(t.Context(), orders.New(quiet)))
			for name, want := range tt.files {
				if text, err := os.ReadFile(filepath.Join(sh.Dir(), name)); string(text) != want || err != nil {
					t.Errorf("%s is %q, %v, want %q", name, text, err, want)
				}
			}
		})
	}
}

// TestStreamsEndWithThePayload: what the payload wrote arrives, whoever still holds its
// end of the pipe and goes on writing.
func TestStreamsEndWithThePayload(t *testing.T) {
	j, sh, client, spec := streaming(t, streamOut)
	s, files, err := j.OpenStreams(t.Context(), client, spec)
	must(t, err)
	defer s.Close()
	fd, err := syscall.Dup(int(files[0].Fd()))
	must(t, err)
	holder := os.NewFile(uintptr(fd), "holder")
	defer holder.Close()
	text := strings.Repeat("all of it\n", 1000)
	_, err = holder.WriteString(text)
	must(t, err)
	s.Begin()
	must(t, s.Drain(t.Context(), orders.New(quiet)))
	if got, err := os.ReadFile(filepath.Join(sh.Dir(), "out")); string(got) != text || err != nil {
		t.Errorf("%d bytes have arrived, %v, want %d", len(got), err, len(text))
	}
	if _, err := holder.WriteString("more"); err == nil {
		t.Error("what the job has left can go on writing")
	}
}

// TestStreamsEndByOrder: a demand that allows no delay does not wait for a shadow that takes
// no output; one that does, waits.
func TestStreamsEndByOrder(t *testing.T) {
	for name, urgency := range map[string]orders.Urgency{"hard": orders.Hard, "soft": orders.Soft} {
		t.Run(name, func(t *testing.T) {
			j, sh, client, spec := streaming(t, streamOut)
			writing, answer := make(chan struct{}), make(chan struct{})
			sh.On("write", 1, condortest.Do(func(condortest.Heard) { close(writing) }), condortest.Stall(answer))
			s, files, err := j.OpenStreams(t.Context(), client, spec)
			must(t, err)
			defer s.Close()
			must(t, runWith(t, s, spec, files, "echo words").Wait())
			<-writing
			o, drained := orders.New(quiet), make(chan error, 1)
			go func() { drained <- s.Drain(t.Context(), o) }()
			o.End(orders.Demand{Reason: "enough", Urgency: urgency})
			if urgency == orders.Soft {
				select {
				case <-drained:
					t.Error("what the job wrote is given up")
				case <-time.After(20 * time.Millisecond): // nothing tells that it waits
				}
				close(answer)
			}
			select {
			case err := <-drained:
				must(t, err)
			case <-time.After(20 * time.Second):
				t.Error("the end waits for the shadow")
			}
			if urgency == orders.Hard {
				close(answer)
			}
		})
	}
}

// TestStreamsCannotOpen: a file that the submit side does not open holds the job with
// stock's codes, 9 for output and 10 for input, and a shadow that is lost does not.
func TestStreamsCannotOpen(t *testing.T) {
	for name, tt := range map[string]struct {
		job   string
		code  int
		words string
	}{
		"input":  {`In = "IWD/none"` + "\nStreamIn = true", shadow.HoldUnableToOpenInputStream, "unable to establish standard input stream"},
		"output": {streamIn + `Out = "IWD/none/out"` + "\nStreamOut = true", shadow.HoldUnableToOpenOutputStream, "unable to establish standard output stream"},
		"errors": {streamOut + `Err = "IWD/none/err"` + "\nStreamErr = true", shadow.HoldUnableToOpenOutputStream, "unable to establish standard error stream"},
	} {
		t.Run(name, func(t *testing.T) {
			j, _, client, spec := streaming(t, tt.job)
			s, _, err := j.OpenStreams(t.Context(), client, spec)
			s.Close()
			if f := failure.Of(err); err == nil || f.Code != tt.code || !strings.Contains(err.Error(), tt.words) {
				t.Errorf("%v, want %d %q", err, tt.code, tt.words)
			}
		})
	}
	j, sh, client, spec := streaming(t, streamOut)
	lost := client.Lost()
	sh.Disconnect()
	<-lost
	client.Abandon(errors.New("the lease is over"))
	s, _, err := j.OpenStreams(t.Context(), client, spec)
	s.Close()
	if f := failure.Of(err); !errors.Is(err, shadow.ErrLost) || f.Code != shadow.VacateStarterError {
		t.Errorf("a shadow that is lost: %v, %d", err, f.Code)
	}
}

// TestStreamFails: a file that the shadow does not write any more holds the job, and
// the reason is the system's.
func TestStreamFails(t *testing.T) {
	for _, when := range []string{"while it runs", "at its end"} {
		t.Run(when, func(t *testing.T) {
			j, sh, client, spec := streaming(t, streamOut)
			sh.On("write", 0, condortest.Refuse(syscall.ENOSPC))
			s, files, err := j.OpenStreams(t.Context(), client, spec)
			must(t, err)
			defer s.Close()
			_ = runWith(t, s, spec, files, "echo too much").Wait()
			if when == "while it runs" {
				err = <-s.Failure()
			} else {
				err = s.Drain(t.Context(), orders.New(quiet))
			}
			f := failure.Of(err)
			if err == nil || f.Code != shadow.HoldUnableToOpenOutputStream || f.Subcode != int(syscall.ENOSPC) || !strings.Contains(err.Error(), "StreamHandler: stdout") {
				t.Errorf("%v", err)
			}
		})
	}
	j, sh, client, spec := streaming(t, streamIn)
	sh.On("read", 0, condortest.Refuse(syscall.EIO))
	s, files, err := j.OpenStreams(t.Context(), client, spec)
	must(t, err)
	defer s.Close()
	_ = runWith(t, s, spec, files, "cat").Wait()
	if f := failure.Of(<-s.Failure()); f.Code != shadow.HoldUnableToOpenInputStream || f.Subcode != int(syscall.EIO) {
		t.Errorf("input: %+v", f)
	}
}

// TestStreamIsCutShort: a shadow that does not take what the payload wrote keeps the end
// of the job waiting only as long as its context.
func TestStreamIsCutShort(t *testing.T) {
	j, sh, client, spec := streaming(t, streamOut)
	written := make(chan struct{})
	over := make(chan struct{})
	sh.On("write", 0, condortest.Do(func(condortest.Heard) { close(written) }), condortest.Stall(over))
	s, files, err := j.OpenStreams(t.Context(), client, spec)
	must(t, err)
	_ = runWith(t, s, spec, files, "echo x").Wait()
	<-written
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Drain(ctx, orders.New(quiet)); err != nil {
		t.Error(err)
	}
	s.Close()
	close(over)
}

// TestNoStreams: a job without streams has none to wait for.
func TestNoStreams(t *testing.T) {
	var s *payloadrun.Streams
	if err := s.Drain(t.Context(), orders.New(quiet)); err != nil {
		t.Error(err)
	}
	s.Close()
	select {
	case err := <-s.Failure():
		t.Error(err)
	default:
	}
}
