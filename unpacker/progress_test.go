package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/unpacker/tarstream"
)

// TestProgress: while nobody takes the stream, the confined program says how far it is, again and again; the stream is the
// same, and nothing is said if nobody asked.
func TestProgress(t *testing.T) {
	image := "testdata/zstd.squashfs"
	f, err := os.Open(image)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := exec.Command("/proc/self/exe", "-fd=3", "-progress=1ms")
	cmd.Env = append(os.Environ(), childKey+"=program")
	cmd.ExtraFiles = []*os.File{f}
	errs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := json.NewDecoder(bufio.NewReader(errs))
	var last progress
	for n := 0; n < 5 || last.Bytes == 0; n++ {
		var line struct {
			Unconfined []string
			Progress   progress
		}
		if err := said.Decode(&line); err != nil {
			t.Fatal(err)
		}
		if p := line.Progress; p.Entries < last.Entries || p.Bytes < last.Bytes {
			t.Errorf("first %+v, then %+v", last, p)
		}
		last = line.Progress
	}
	if last.Of != 319 || last.Entries == 0 || last.Entries > last.Of {
		t.Errorf("%+v, want up to 319 entries", last)
	}
	stream, err := io.ReadAll(stdout)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, errs)
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(content(), list(t, bytes.NewReader(stream))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, errs, code := child(t, "program", image); bytes.Contains(errs, []byte("progress")) || code != 0 {
		t.Errorf("exit code %d, said %s", code, errs)
	}
}

// TestNothingIsSaidAfterwards: whoever stops it can write what must be the last line.
func TestNothingIsSaidAfterwards(t *testing.T) {
	entered, leave := make(chan struct{}, 1), make(chan struct{})
	var saying atomic.Bool
	stop := tell(tarstream.New(io.Discard, tarstream.Bounds{}), 0, time.Nanosecond, writerFunc(func(p []byte) (int, error) {
		saying.Store(true)
		select {
		case entered <- struct{}{}:
		default:
		}
		<-leave
		saying.Store(false)
		return len(p), nil
	}))
	<-entered
	time.AfterFunc(10*time.Millisecond, func() { close(leave) })
	if stop(); saying.Load() {
		t.Error("it still says something")
	}
}

type writerFunc func(p []byte) (int, error)

func (w writerFunc) Write(p []byte) (int, error) { return w(p) }
