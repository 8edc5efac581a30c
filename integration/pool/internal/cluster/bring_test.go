package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"podstarter/integration/pool/internal/daemon"
)

// TestMain lets the test's own binary be the program that starts daemons.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == daemon.Verb {
		fmt.Fprintln(os.Stderr, daemon.Exec(os.Args[2:]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestHungDaemonIsReplaced: one that was just started and does not become ready is an
// error; one that ran before is replaced.
func TestHungDaemonIsReplaced(t *testing.T) {
	dir := t.TempDir()
	n := Node{Daemons: daemon.Set{Records: filepath.Join(dir, "run"), Logs: filepath.Join(dir, "log")}}
	spec := daemon.Spec{Name: "sleeper", Args: []string{"sleep", "1000"}}
	t.Cleanup(func() { _ = n.Daemons.Stop(context.Background(), spec.Name, time.Second) })
	hangs := errors.New("it hangs")
	asked := 0
	if err := n.bring(t.Context(), spec, func(context.Context) error { asked++; return hangs }); !errors.Is(err, hangs) || asked != 1 {
		t.Fatalf("a new daemon that is not ready: %v, asked %d times", err, asked)
	}
	first, _ := n.Daemons.Running(spec.Name)
	// ready is what all but the first are.
	ready := func(context.Context) error {
		if r, ok := n.Daemons.Running(spec.Name); ok && r.PID != first.PID {
			return nil
		}
		return hangs
	}
	if err := n.bring(t.Context(), spec, ready); err != nil {
		t.Fatal(err)
	}
	second, ok := n.Daemons.Running(spec.Name)
	if !ok || first.Alive() {
		t.Errorf("the first daemon is alive: %v; the second runs: %v", first.Alive(), ok)
	}
	if err := n.bring(t.Context(), spec, ready); err != nil {
		t.Fatal(err)
	}
	if third, _ := n.Daemons.Running(spec.Name); third != second {
		t.Errorf("a daemon that is ready was replaced: %+v, %+v", second, third)
	}
}
