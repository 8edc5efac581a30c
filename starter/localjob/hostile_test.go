package localjob

import (
	"os"
	"strings"
	"testing"
	"time"

	"podstarter/condor/startd"
)

// TestLogOfTheKernel: a job cannot make root write to the kernel's own files by its event log's name.
func TestLogOfTheKernel(t *testing.T) {
	const sysctl = "/proc/sys/kernel/domainname"
	for _, attr := range []string{"UserLog", "DAGManNodesLog"} {
		t.Run(attr, func(t *testing.T) {
			before, err := os.ReadFile(sysctl)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.WriteFile(sysctl, before, 0o644) })
			w := newWorld(t, script("exit 0")+"\n"+attr+" = \""+sysctl+"\"", nil, nil)
			if code := w.run(t); code != ExitCompleted {
				t.Errorf("exit code %d", code)
			}
			if after, err := os.ReadFile(sysctl); err != nil || string(after) != string(before) {
				t.Errorf("%s is %q, was %q, %v", sysctl, after, before, err)
			}
			if log := w.log.String(); !strings.Contains(log, sysctl+": open") {
				t.Error("nothing says that this log cannot be written")
			}
		})
	}
}

// TestNoHurry: the schedd starts a job at once that it cannot hand over; that must not happen many times a second.
func TestNoHurry(t *testing.T) {
	w := newWorld(t, "", nil, nil)
	w.ad = "(\n"
	w.pause = 100 * time.Millisecond
	began := time.Now()
	if code := w.run(t); code != ExitGeneral || time.Since(began) < w.pause {
		t.Errorf("exit code %d after %v, want %d after %v", code, time.Since(began), ExitGeneral, w.pause)
	}
}

// TestNoSecretsInTheEnvironment: no program that this process starts finds there what the schedd has handed down.
func TestNoSecretsInTheEnvironment(t *testing.T) {
	names := startd.SecretVariables()
	for _, name := range names {
		t.Setenv(name, "secret")
	}
	w := newWorld(t, script("exit 0"), nil, nil)
	if code := w.run(t); code != ExitCompleted {
		t.Errorf("exit code %d", code)
	}
	for _, name := range names {
		if value, is := os.LookupEnv(name); is {
			t.Errorf("%s is %q", name, value)
		}
	}
}
