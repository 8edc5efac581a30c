package harness

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/google/go-cmp/cmp"
)

func TestWaitFileSeesWhatIsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "job.log")
	calls := make(chan string, 100)
	done := make(chan error, 1)
	go func() {
		done <- WaitFile(t.Context(), path, func(content []byte) (bool, error) {
			calls <- string(content)
			return strings.HasSuffix(string(content), "end\n"), nil
		})
	}()
	if first := <-calls; first != "" {
		t.Fatalf("content of a missing file: %q, want none", first)
	}
	if err := os.WriteFile(path, []byte("begin\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for text := range calls {
		if text == "begin\n" {
			break
		}
	}
	// An event log only grows: its name and directory stay as they are.
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.WriteString("more\n"); err != nil {
		t.Fatal(err)
	}
	for text := range calls {
		if text == "begin\nmore\n" {
			break
		}
	}
	log.Close()
	if err := os.WriteFile(path+".new", []byte("the end\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestWaitFileEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	err := WaitFile(ctx, filepath.Join(t.TempDir(), "never"), func([]byte) (bool, error) { return false, nil })
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the context's end", err)
	}
}

func TestProcesses(t *testing.T) {
	command := exec.Command("sleep", "600")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	reaped := make(chan error, 1)
	go func() { reaped <- command.Wait() }()
	// The kernel renames a process before it lays out its arguments. One seen in between has none.
	ours := func(p Process) bool { return p.PID == command.Process.Pid && p.Comm == "sleep" && len(p.Args) > 0 }
	found, err := WaitSome(t.Context(), 1, ours)
	if err != nil {
		t.Fatal(err)
	}
	if p := found[0]; p.UID != os.Getuid() || p.Parent != os.Getpid() || len(p.Args) != 2 || p.Args[1] != "600" || p.VmHWM <= 0 {
		t.Errorf("the process was read as %+v", p)
	}
	short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := WaitNone(short, ours); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "sleep") {
		t.Errorf("while it runs: got %v, want the context's error and the name of the process", err)
	}
	if err := Kill(found[0], unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := WaitNone(t.Context(), ours); err != nil {
		t.Fatal(err)
	}
	<-reaped
	if err := Kill(found[0], unix.SIGKILL); err == nil {
		t.Error("a process that is gone was killed again")
	}
}

func TestEldest(t *testing.T) {
	shell, child, other := Process{PID: 2, Parent: 1}, Process{PID: 3, Parent: 2}, Process{PID: 4, Parent: 1}
	if diff := cmp.Diff([]Process{shell, other}, Eldest([]Process{shell, child, other})); diff != "" {
		t.Error(diff)
	}
}

// TestPollOfSlowCheck: a check that takes long is made a quarter of the time at most.
func TestPollOfSlowCheck(t *testing.T) {
	for _, tc := range []struct {
		takes time.Duration
		calls int // in a minute, at most
	}{{0, 620}, {time.Second, 16}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			calls := 0
			err := Poll(ctx, "nothing", func() (bool, error) {
				calls++
				time.Sleep(tc.takes)
				return false, nil
			})
			if !errors.Is(err, context.DeadlineExceeded) || calls > tc.calls || calls < tc.calls*9/10 {
				t.Errorf("a check that takes %v: %d calls in a minute, want some %d: %v", tc.takes, calls, tc.calls, err)
			}
		})
	}
}
