//go:build pool

package attacks

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"podstarter/integration/harness"
)

// secrets picks the arguments that must not be seen.
func (w *target) secrets(t *testing.T, seen []string, unseen bool) []string {
	t.Helper()
	if saw := slices.ContainsFunc(seen, func(s string) bool { return strings.Contains(s, "condor_master") }); saw == unseen {
		t.Errorf("the attacker saw arguments of the pilot's processes: %v: %q", saw, seen)
	}
	var secret []string
	for _, path := range []string{"/etc/podstarter/credentials/pool_password", "/var/run/secrets/kubernetes.io/serviceaccount/token"} {
		text, err := pool.EP(t.Context(), w.side, "cat", path)
		if err != nil || text == "" {
			t.Fatalf("%s: %q, %v", path, text, err)
		}
		secret = append(secret, strings.TrimSpace(text))
	}
	return slices.DeleteFunc(seen, func(args string) bool {
		return !claimID.MatchString(args) && !slices.ContainsFunc(secret, func(s string) bool { return strings.Contains(args, s) })
	})
}

// claimID lets its owner command a slot: an address, numbers and a secret (HTCondor
// src/condor_utils/condor_claimid_parser.h).
var claimID = regexp.MustCompile(`<[^>]*>#\d+#\d+#`)

// wrappers are the pod's wrappers. A wrapper that has started itself anew has
// another name in the process table, but the same arguments.
func (w *target) wrappers(t *testing.T) []harness.Process {
	t.Helper()
	inside := pool.InPod(w.side)
	found, err := harness.Processes(func(p harness.Process) bool {
		return inside(p) && p.Comm == harness.WrapperComm && p.UID == 0
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// newWrapper is the wrapper that was not there before.
func (w *target) newWrapper(t *testing.T, before []harness.Process) harness.Process {
	t.Helper()
	found := slices.DeleteFunc(w.wrappers(t), func(p harness.Process) bool {
		return slices.ContainsFunc(before, func(b harness.Process) bool { return b.PID == p.PID })
	})
	if len(found) != 1 {
		t.Fatalf("new wrappers: %v, want that of the attacker", found)
	}
	return found[0]
}

// wrapperOf is the wrapper of a job's process, which is in the same container. With spares
// it may have been there before its job, and other new ones are there.
func (w *target) wrapperOf(t *testing.T, job harness.Process) harness.Process {
	t.Helper()
	container := containerOf(t, job)
	found := slices.DeleteFunc(w.wrappers(t), func(p harness.Process) bool { return containerOf(t, p) != container })
	if len(found) != 1 {
		t.Fatalf("wrappers in the container of %v: %v", job, found)
	}
	return found[0]
}

// goSettings are the variables in the environment of a wrapper that control Go's
// runtime.
func goSettings(t *testing.T, wrapper harness.Process) []string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", wrapper.PID))
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(strings.Split(string(text), "\x00"), func(v string) bool { return !strings.HasPrefix(v, "GODEBUG=") })
}
