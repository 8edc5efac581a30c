package conformance

import (
	"context"
	"fmt"
	"os"
	"strings"

	"podstarter/integration/harness"
)

// wishesCases are submit commands for what only some starters do, and for a job's account.
var wishesCases = append(sinceThen([]Case{
	{Name: "manifest", Shows: "manifest_dir: lists of the files before and after the job, and its environment",
		// The environment has process numbers, so its size is no other's.
		Files: []harness.File{{Name: "data/in", Content: []byte("in\n")}, Script("job", `mv notes/environment was
ls -ld notes | cut -c1-10
grep -o "SAYS=[^ ]*" was
tr ' ' '\n' <was | sed -n 's/^\([A-Z_][A-Z_0-9]*\)=.*/\1/p'
rm was
mkdir -p made/deep && echo new >made/deep/file && ln -s /etc made/link
`)},
		Submit: "executable = job\nmanifest_dir = notes\nenvironment = \"SAYS=hello\"\ntransfer_input_files = data\noutput = out\nerror = err"},
	{Name: "manifest-outside", Shows: "a manifest_dir that leads out of the sandbox",
		Submit: "manifest_dir = ../notes\narguments = out=ran\noutput = out"},
	{Name: "tool-daemon", Shows: "a tool that the starter starts beside the job (tool_daemon_cmd)", Requirements: "TARGET.HasTDP =!= 7",
		Files:  []harness.File{Script("tool", "echo \"a tool\" >tool.out\nexec sleep 1000\n")},
		Submit: "tool_daemon_cmd = tool\ntool_daemon_output = tool.said\narguments = sleep=2s out=ran\noutput = out"},
	// It is this attribute's name that keeps condor_submit from requiring HasEncryptExecuteDirectory.
	{Name: "encrypted-sandbox", Shows: "encrypt_execute_directory, where no slot offers it", Requirements: "TARGET.EncryptExecuteDirectory =!= 7",
		Submit: "encrypt_execute_directory = True\narguments = out=ran\noutput = out"},
	{Name: "stopped-at-exec", Shows: "a job that wants to be stopped before its first instruction (+SuspendJobAtExec)",
		Submit: "arguments = forever\njob_max_vacate_time = 3\n+SuspendJobAtExec = True",
		Steps:  []Step{heldOr(harness.EventExecute), stoppedAtExec, Tool("condor_rm")}},
	// This attribute's name keeps condor_submit from requiring that the slot has such a directory.
	{Name: "other-root", Shows: "a job that asks for another root directory (+RequestedChroot), at which no stock starter since 23.10 looks",
		Requirements: "TARGET.edChroot =!= 7", Submit: "+RequestedChroot = \"/other\"\narguments = out=ran\noutput = out"},
	{Name: "parrot", Shows: "a job that asks for Parrot (+UseParrot), where the site has none", Requirements: "NumShadowStarts =?= undefined",
		Submit:   "+UseParrot = True\narguments = out=ran\noutput = out",
		Fleeting: byChance("how often the shadow tries to find its starter again", "jobcurrentreconnectattempt", "totaljobreconnectattempts"),
		Steps:    []Step{heldOr(harness.EventEvicted, harness.EventShadowException, harness.EventRemoteError), Tool("condor_rm")}},
	{Name: "primary-group", Shows: "primary_unix_group: the group of files at the access point",
		Submit: "primary_unix_group = alice\narguments = facts\noutput = out", Facts: true},
	{Name: "primary-group-shared", Shows: "primary_unix_group without file transfer",
		Submit: withoutTransfer + "primary_unix_group = alice\narguments = \"-c 'exit 3'\""},
}), []Case{
	{Name: "run-as-owner", Shows: "run_as_owner",
		Submit: "run_as_owner = True\narguments = facts\noutput = out", Facts: true},
	{Name: "not-as-owner", Shows: "run_as_owner = False",
		Submit: "run_as_owner = False\narguments = facts\noutput = out", Facts: true},
}...)

// sinceThen limits cases to HTCondor 25.14: 23.9 knows fewer of these commands, and gives
// jobs fewer variables.
func sinceThen(cases []Case) []Case {
	for i := range cases {
		cases[i] = cases[i].only("25.14+25.14")
	}
	return cases
}

// heldOr waits until our starter holds the job, or, under the stock starter, for one of the events.
func heldOr(numbers ...int) Step {
	return Wait(fmt.Sprintf("held, or one of the events %v", numbers), func(ctx context.Context, r *Run) error {
		if r.Side.IsStock() {
			return anyOf(numbers...).do(ctx, r)
		}
		return Event(harness.EventHeld, 1).do(ctx, r)
	})
}

// stoppedAtExec waits until a process of the stock starter's job is stopped. Ours has none.
var stoppedAtExec = Wait("the job is stopped", func(ctx context.Context, r *Run) error {
	if !r.Side.IsStock() {
		return nil
	}
	payload, err := r.payload()
	if err != nil {
		return err
	}
	_, err = harness.WaitSome(ctx, 1, func(q harness.Process) bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", q.PID))
		_, after, _ := strings.Cut(string(stat), ") ") // its name has no parentheses
		return err == nil && (strings.HasPrefix(after, "T") || strings.HasPrefix(after, "t")) && payload(q)
	})
	return err
})
