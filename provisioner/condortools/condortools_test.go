package condortools

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

func all(into *string) func(io.Reader) error {
	return func(r io.Reader) error {
		text, err := io.ReadAll(r)
		*into = string(text)
		return err
	}
}

func TestRun(t *testing.T) {
	var out string
	if err := Run(context.Background(), all(&out), "sh", "-c", "echo jobs; echo noise >&2"); err != nil || out != "jobs\n" {
		t.Errorf("%q, %v", out, err)
	}
	err := Run(context.Background(), all(&out), "sh", "-c", "yes error | head -c 100000 >&2; exit 3")
	if err == nil || !strings.Contains(err.Error(), "exit status 3: error error") || len(err.Error()) > maxWords+200 {
		t.Errorf("the error is %.200v", err)
	}
	if err := Run(context.Background(), all(&out), "condor_no_such_tool"); err == nil || !strings.Contains(err.Error(), "must be in the image") {
		t.Errorf("the error is %v", err)
	}
}

// A reader that has enough ends the tool.
func TestReaderThatFails(t *testing.T) {
	enough := errors.New("enough")
	err := Run(context.Background(), func(r io.Reader) error {
		_, _ = r.Read(make([]byte, 10))
		return enough
	}, "sh", "-c", "while echo more; do :; done")
	if !errors.Is(err, enough) {
		t.Errorf("the error is %v", err)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	err := Run(ctx, func(r io.Reader) error {
		_, err := r.Read(make([]byte, 1))
		cancel()
		return err
	}, "sh", "-c", "echo; exec sleep 1000")
	if err == nil {
		t.Error("a tool that was cancelled has no error")
	}
}

// A child that keeps the pipe open does not keep the provisioner waiting.
func TestChildThatKeepsThePipe(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	begin := time.Now()
	err := Run(ctx, func(r io.Reader) error {
		b := bufio.NewReader(r)
		if _, err := b.ReadString('\n'); err != nil {
			return err
		}
		cancel()
		_, err := io.Copy(io.Discard, b)
		return err
	}, "sh", "-c", "sleep 30 & echo; wait")
	if err == nil || time.Since(begin) > 20*time.Second {
		t.Errorf("after %s the error is %v", time.Since(begin), err)
	}
}
