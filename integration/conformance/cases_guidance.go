package conformance

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"podstarter/integration/harness"
)

// guidanceSetup has a shadow that takes its guidance from the job's ad, for jobs
// that ask for it with a file, and a diagnostic. Such a shadow takes no second
// job, because it would continue with the guidance of the first.
var guidanceSetup = Setup{
	Submit: "SHADOW = " + programs + "/shadow\n",
	// It begins each job, so that it runs no other program.
	Submitting: []harness.File{Script("shadow", `PATH=/usr/sbin:$PATH
for a; do
	case $a in [0-9]*.[0-9]*) if [ -e "/tmp/guided.${a%%.*}" ]; then
		export _CONDOR_SHADOW_WORKLIFE=0
		exec condor_shadow --use-guidance-in-job-ad "$@"
	fi ;; esac
done
exec condor_shadow "$@"
`)},
	Execute: "STARTER_DIAGNOSTIC_send_ep_logs = $(CONFORMANCE_PROGRAMS)/diagnostic\nSTARTER_DIAGNOSTIC_fails = $(CONFORMANCE_PROGRAMS)/diagnostic-fails\n",
	Programs: []harness.File{
		Script("diagnostic", `echo "line one
line two"
[ -n "$_CONDOR_BIN" ] && echo bin
[ -d "/proc/$_CONDOR_STARTER_PID" ] && echo starter
[ "$(id -u)" != 0 ] && echo not root
`),
		Script("diagnostic-fails", "echo failed; exit 3\n"),
	},
}

// guided are commands of the shadow, one list for each job. A list that ends
// without a command to the starter gets one more, because the shadow reads beyond
// the end of a list.
var guided = []string{
	`{ [ Command = "CarryOn" ], [ Command = "CarryOn" ] }`,
	`{ [ Command = "StartJob"; Extraneous = True ], [ Command = "CarryOn" ] }`,
	`{ [ Command = "Abort" ], [ Command = "CarryOn" ] }`,
	`{ [ Command = "RetryReqest"; RetryDelay = 1 ], [ Command = "RetryTransfer" ], [ Command = "RetryReqest"; RetryDelay = 1 ], [ Command = "CarryOn" ], [ Command = "CarryOn" ] }`,
	`{ [ Command = "RunDiagnostic"; Diagnostic = "send_ep_logs" ], [ Command = "RunDiagnostic"; Diagnostic = "nobody-knows" ], [ Command = "RunDiagnostic"; Diagnostic = "fails" ], [ Command = "CarryOn" ], [ Command = "CarryOn" ] }`,
	`{ [ Command = "DoJobSetup" ], [ Command = "StartJob" ], [ Command = "CarryOn" ] }`,
	`{ [ Command = "MakeCoffee" ], [ Command = "CarryOn" ] }`,
}

// guidanceCases give all of it to starters whose input arrives, and some of it to
// starters whose input does not.
var guidanceCases = []Case{{
	Name: "guidance", Shows: "each command of the shadow to starters whose input did not arrive, or did", Alone: true, Versions: []string{"25.14+25.14"},
	Files:  []harness.File{Script("job.sh", "ls here gone; exit 3\n"), {Name: "here", Content: []byte("input\n")}, {Name: "gone"}},
	Submit: "hold = True\nexecutable = job.sh\ntransfer_input_files = $(needs)\noutput = out.$(Process)\n+_condor_guidance_test_case = $(guided)",
	Count:  len(conversations()), Queue: "queue needs, guided from (\n" + strings.Join(conversations(), "\n") + "\n)",
	Steps: []Step{
		Quietly(Shell("rm gone; touch /tmp/guided.<cluster>")), Tool("condor_release", "<cluster>"), Ends(),
		Note("what the shadow heard of diagnostics", heardOfDiagnostics),
		Quietly(Shell("rm /tmp/guided.<cluster>")),
	},
}}

// conversations are lines with a job's input and its list of commands.
func conversations() []string {
	var all []string
	for _, list := range guided {
		all = append(all, "gone "+list)
		// Not each for both: a job that is given up although its input arrived
		// comes back for ever.
		if strings.Contains(list, "Retry") || strings.Contains(list, "Diagnostic") {
			all = append(all, "here "+list)
		}
	}
	return all
}

// heardOfDiagnostics is what the shadows' log says about diagnostics of the jobs.
func heardOfDiagnostics(_ context.Context, r *Run) (string, error) {
	dir := filepath.Join(r.Pool.State, "log", "pool")
	text, err := os.ReadFile(filepath.Join(dir, "ShadowLog"))
	if err != nil {
		return "", err
	}
	if old, err := os.ReadFile(filepath.Join(dir, "ShadowLog.old")); err == nil {
		text = append(old, text...)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	var lines []string
	for _, job := range r.Jobs {
		for _, m := range regexp.MustCompile(`(?m)^.*\(`+regexp.QuoteMeta(job.ID())+`\) \(\d+\): (.*iagnostic.*)$`).FindAllSubmatch(text, -1) {
			lines = append(lines, string(m[1]))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n"), nil
}
