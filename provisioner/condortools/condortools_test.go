package condortools

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
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

// The end of the provisioner does not wait for a tool that hangs, nor for the
// children of one that is a script, and leaves none of them behind.
func TestToolThatHangs(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	mark := t.TempDir() + "/alive"
	begin := time.Now()
	err := Run(ctx, func(r io.Reader) error {
		if _, err := r.Read(make([]byte, 1)); err != nil {
			return err
		}
		begin = time.Now()
		cancel()
		_, err := io.Copy(io.Discard, r)
		return err
	}, "sh", "-c", "trap '' TERM INT; (echo; while sleep 0.1; do touch "+mark+"; done); :")
	if took := time.Since(begin); err == nil || took > 3*time.Second {
		t.Errorf("after %s the error is %v", took, err)
	}
	// A child that lives touches the file again.
	_ = os.Remove(mark)
	time.Sleep(500 * time.Millisecond)
	if _, err := os.Stat(mark); err == nil {
		t.Error("a child of the tool lives")
	}
}

// A tool that prints more than is read ends at once.
func TestMoreThanIsRead(t *testing.T) {
	begin := time.Now()
	err := Run(t.Context(), func(r io.Reader) error { _, err := r.Read(make([]byte, 10)); return err }, "sh", "-c", "exec cat /dev/zero")
	if took := time.Since(begin); err == nil || took > 30*time.Second {
		t.Errorf("after %s the error is %v", took, err)
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
