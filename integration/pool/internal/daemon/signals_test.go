package daemon

import (
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"testing"
	"time"
)

// TestIgnoredSignalsEndHere: a daemon does not ignore the signals that whoever
// started the pool ignores.
func TestIgnoredSignalsEndHere(t *testing.T) {
	signal.Ignore(syscall.SIGUSR2)
	defer signal.Reset(syscall.SIGUSR2)
	set := newSet(t)
	if _, err := set.Start(t.Context(), Spec{Name: "sleeper", Args: []string{"sleep", "1000"}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Stop(t.Context(), "sleeper", time.Second) })
	r, ok := set.Running("sleeper")
	if !ok {
		t.Fatal("it does not run")
	}
	// Until it has become the daemon it still ignores.
	deadline := time.Now().Add(10 * time.Second)
	for {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.PID))
		if err != nil {
			t.Fatal(err)
		}
		if regexp.MustCompile(`(?m)^Name:\tsleep$(?s:.*)^SigIgn:\t0+$`).Match(text) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the daemon ignores signals:\n%s", text)
		}
	}
}
