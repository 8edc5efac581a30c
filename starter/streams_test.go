package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"syscall"
	"testing"

	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/payload"
)

func outputPipe(t *testing.T) (*pipeEnd, *os.File) {
	t.Helper()
	keep, give, err := payload.Pipe(true, os.Getuid(), os.Getgid())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keep.Close(); give.Close() })
	return &pipeEnd{File: keep, left: -1}, give
}

// TestPipeEndsWithThePayload: what the payload wrote is read, whoever holds its
// end of the pipe still and goes on writing.
func TestPipeEndsWithThePayload(t *testing.T) {
	end, holder := outputPipe(t)
	if _, err := holder.WriteString("all of it"); err != nil {
		t.Fatal(err)
	}
	end.end()
	first := make([]byte, 3)
	if n, err := end.Read(first); n != 3 || err != nil {
		t.Fatalf("%q, %v", first[:n], err)
	}
	if _, err := holder.WriteString(" and of others"); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(end)
	if err != nil || string(rest) != " of it" {
		t.Errorf("%q, %v", rest, err)
	}
}

// TestPipeEndWakes: a reader that waits for more hears that there will be none.
func TestPipeEndWakes(t *testing.T) {
	end, _ := outputPipe(t)
	read := make(chan error, 1)
	go func() {
		_, err := end.Read(make([]byte, 1))
		read <- err
	}()
	end.end()
	if err := <-read; !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

func TestPipeEndOfItself(t *testing.T) {
	end, give := outputPipe(t)
	if _, err := give.WriteString("said"); err != nil {
		t.Fatal(err)
	}
	give.Close()
	if got, err := io.ReadAll(end); err != nil || string(got) != "said" {
		t.Errorf("%q, %v", got, err)
	}
}

// TestStreamFailure is told with the codes of stock: 9 for output, 10 for input,
// and why.
func TestStreamFailure(t *testing.T) {
	refusal := &shadow.CallError{Call: "write", Result: -1, Errno: syscall.ENOSPC}
	for output, code := range map[bool]int{true: 9, false: 10} {
		f := (*job.Failure)(nil)
		err := (&pump{name: payload.Stdout, output: output}).failure(refusal)
		if !errors.As(err, &f) || f.Code != code || f.Subcode != int(syscall.ENOSPC) {
			t.Errorf("%v", err)
		}
	}
}

// TestNoStreams: a job without streams has none to wait for.
func TestNoStreams(t *testing.T) {
	var s *streams
	if err := s.drain(context.Background()); err != nil {
		t.Error(err)
	}
	s.close()
	select {
	case err := <-s.failure():
		t.Error(err)
	default:
	}
	a := &activation{log: slog.New(slog.DiscardHandler)}
	a.chirp.finish(context.Background())
	a.chirp.close()
	if a.chirp.takeDelayed() != nil || a.chirp.hidden() != nil {
		t.Error("a job without a proxy")
	}
}
