//go:build pool

package e2e

import (
	_ "embed"
	"strings"
	"testing"
)

//go:embed testdata/ownprocesses.sh
var ownProcesses string

// TestOwnProcesses: with USE_PID_NAMESPACES, a job without an image sees the processes of its own PID namespace, under both starters; it ends, and is ended,
// as any other. Under ours, so do its scripts and the sessions of its owner, and nothing is left when somebody kills the starter.
func TestOwnProcesses(t *testing.T) {
	oursOnly(t)
	starter, err := pool.Config(t.Context(), side, "STARTER")
	if err != nil {
		t.Fatal(err)
	}
	const ours = ": the first process is condor_pod_wrap, its own /proc\n"
	for name, tt := range map[string]struct {
		starter, first string
		args           []string
		more           map[string][]string
	}{
		"stock": {starter: "/usr/sbin/condor_starter", first: "condor_pid_ns_i", more: map[string][]string{
			"look":     {"variables of the namespace: 1\n"},
			"beside":   {"before: the first process is sh, its own /proc\n", "after: the first process is sh, its own /proc\n"},
			"nomounts": {"Code 6 Subcode 38\n"},
			"noinit":   {"job: the first process is place.sh, its own /proc\n"},
		}},
		"ours": {starter: starter, first: "condor_pod_wrap", args: []string{"all"}, more: map[string][]string{
			"look":     {"variables of the namespace: 0\n"},
			"beside":   {"session" + ours, "before" + ours, "after" + ours},
			"suspend":  {"suspended\n", "continued\n", "left: 0\n"},
			"killed":   {"left: 0\n"},
			"nomounts": {"job: the first process is sh, its own /proc\n", "temporary: machine\n"},
			"noinit":   {"job" + ours},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			printed, err := onMachine(t.Context(), ownProcesses, tt.starter, tt.args...)
			if err != nil {
				t.Fatal(err)
			}
			seen := ": the first process is " + tt.first + ", its own /proc\n"
			for _, wants := range []map[string][]string{{
				"place":  {"job" + seen, "temporary: \n"},
				"look":   {"job" + seen, "parent: 1\n", "lives on\n", "(1) Normal termination (return value 3)\n", "left: 0\n"},
				"SEGV":   {"(0) Abnormal termination (signal 11)\n"},
				"TERM":   {"(0) Abnormal termination (signal 15)\n"},
				"KILL":   {"(0) Abnormal termination (signal 9)\n"},
				"USR1":   {"(0) Abnormal termination (signal 10)\n"},
				"soft":   {"the process of the log has 3 words of numbers: soft.sh\n", "told\n"},
				"beside": {"chirped\n", "job" + seen},
			}, tt.more} {
				for job, lines := range wants {
					for _, line := range lines {
						if !strings.Contains("\n"+printed[job], "\n"+line) && !strings.Contains(printed[job], "\t"+line) {
							t.Errorf("%s lacks %q:\n%s", job, line, printed[job])
						}
					}
				}
			}
			if t.Failed() {
				t.Log(printed["log"])
			}
		})
	}
}
