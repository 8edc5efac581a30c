package footprint_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestFatalSignals: a starter that somebody ends by a signal ends at once, and its log says what
// it did. The Go runtime alone would take 10 s.
func TestFatalSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGSEGV, syscall.SIGABRT} {
		t.Run(sig.String(), func(t *testing.T) {
			one := start(t, 1, false).all[0]
			began := time.Now()
			must(t, one.cmd.Process.Signal(sig))
			err := one.cmd.Wait()
			took := time.Since(began)
			var exit *exec.ExitError
			if !errors.As(err, &exit) || !exit.Sys().(syscall.WaitStatus).Signaled() || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGABRT {
				t.Errorf("the starter ended with %v, want SIGABRT", err)
			}
			if took > 5*time.Second {
				t.Errorf("the starter ended %v after the signal", took)
			}
			text, err := os.ReadFile(one.log)
			must(t, err)
			for _, want := range []string{"somebody sent signal", sig.String(), "activation.(*activation).follow("} {
				if !strings.Contains(string(text), want) {
					t.Errorf("the log does not say %q", want)
				}
			}
			t.Logf("the starter ended %v after the signal", took)
		})
	}
}
