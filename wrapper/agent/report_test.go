package agent

import (
	"bytes"
	"io"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"podstarter/payload"
)

// written gives the bytes that a launcher writes.
func written(t testing.TB, write func(report)) []byte {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	// failed closes the launcher's stderr; keep this test's.
	stderr, err := unix.Dup(unix.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	write(report{int(w.Fd()), 4711})
	if err := unix.Dup3(stderr, unix.Stderr, 0); err != nil {
		t.Fatal(err)
	}
	unix.Close(stderr)
	w.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestReport(t *testing.T) {
	ready := written(t, report.ready)
	began, failure := decodeReport(ready)
	if failure != nil || time.Since(began.time) > time.Minute || time.Since(began.time) < 0 || began.onMachine != 4711 {
		t.Errorf("%+v, %v", began, failure)
	}
	if began.resident < 1<<20 || began.resident > 1<<30 {
		t.Errorf("%d bytes resident are implausible for a Go program", began.resident)
	}
	want := &payload.StartError{Stage: payload.StageExec, Path: "/caf\xe9", Errno: unix.ENOENT, Interpreter: "/no/sh", Detail: "why"}
	failed := func(r report) {
		r.failed(want.Stage, want.Path, want.Errno, func() (string, string) { return want.Interpreter, want.Detail })
	}
	for _, data := range [][]byte{written(t, failed), append(bytes.Clone(ready), written(t, failed)...)} {
		if _, got := decodeReport(data); !cmp.Equal(want, got) {
			t.Error(cmp.Diff(want, got))
		}
		if _, got := decodeReport(data[:len(data)-3]); got == nil || got.Stage != want.Stage && got.Stage != payload.StageFork {
			t.Errorf("cut short: %+v", got)
		}
	}
	if _, got := decodeReport(nil); got == nil || got.Stage != payload.StageFork {
		t.Errorf("silence: %+v", got)
	}
}

func FuzzReport(f *testing.F) {
	f.Add(written(f, report.ready))
	f.Add(written(f, func(r report) { r.failed(payload.StageChdir, "/x", unix.ENOENT, nil) }))
	f.Fuzz(func(t *testing.T, data []byte) {
		began, failure := decodeReport(data)
		started := began.time
		if (failure == nil) != (!started.IsZero() || len(data) == readySize && data[0] == reportReady) {
			t.Errorf("%v, %+v", started, failure)
		}
	})
}

// TestLauncherWithoutThreads: Go's runtime exits with 2 when it is refused a thread, and
// the error says so; the error of every other end of a launcher is unchanged.
func TestLauncherWithoutThreads(t *testing.T) {
	silent := payload.StartError{Stage: payload.StageFork, Detail: "without a word"}
	said := payload.StartError{Stage: payload.StageFork, Errno: unix.ENOMEM}
	exec := payload.StartError{Stage: payload.StageExec}
	for name, tt := range map[string]struct {
		failure payload.StartError
		status  unix.WaitStatus
		threads bool
	}{
		"no thread":        {silent, 2 << 8, true},
		"another code":     {silent, 1 << 8, false},
		"no failure":       {silent, 0, false},
		"killed":           {silent, 2, false},
		"it gave a reason": {said, 2 << 8, false},
		"a later stage":    {exec, 2 << 8, false},
	} {
		got := withoutThreads(&tt.failure, tt.status)
		if tt.threads && (got.Errno != unix.EAGAIN || got.Detail == tt.failure.Detail) || !tt.threads && *got != tt.failure {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
