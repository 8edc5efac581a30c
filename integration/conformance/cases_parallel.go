package conformance

import (
	"context"
	"fmt"
	"strings"

	"podstarter/integration/harness"
)

// parallelSetup gives the slots to the dedicated scheduler of the access point, which takes slots for jobs with several nodes,
// and has it give them back soon.
var parallelSetup = Setup{
	Execute: `DedicatedScheduler = "DedicatedScheduler@$(` + scheddKnob + `)"
STARTD_ATTRS = $(STARTD_ATTRS) DedicatedScheduler
`,
	Submit: "UNUSED_CLAIM_TIMEOUT = 2\n",
}

// Numbers of events in the log.
const (
	nodeExecutes   = 14
	nodeTerminated = 15
)

// parallelVersions are those with which these cases were looked at.
var parallelVersions = []string{"25.14+25.14"}

// nodes is a job with so many nodes, each of which runs a script.
func nodes(name, shows string, count int, script, submit string, steps ...Step) Case {
	c := Case{Name: "parallel-" + name, Shows: shows, Alone: true, Versions: parallelVersions, Files: []harness.File{Script("job.sh", script), {Name: "input", Content: []byte("input\n")}},
		Submit: fmt.Sprintf("universe = parallel\nmachine_count = %d\nexecutable = job.sh\ntransfer_input_files = input\noutput = out.$(Node)\nerror = err.$(Node)\n", count) + submit,
		Steps:  steps, Fleeting: ofNodes}
	if count > 1 {
		c.Pools = []string{harness.SeveralSlots}
		c.Fleeting = append(c.Fleeting, byChance("nodes begin in any order, and one of them is the last in the startd's history",
			"014 *", "node", "mpiismaster", "out", "err", "jobpid", "exitcode", "exitbysignal", "exitsignal", "onexit*", "lastjobstatus", "origmaxhosts",
			"spooledoutputfiles", "starter_disconnected_from_submit_node", "vacatereason*")...)
	}
	return c
}

var ofNodes = append(byChance("the shadow may write that a node has ended before it has counted its files", "015 *By Node"), napping...)

// toNode runs a command in the pilot for a node that has begun; <scratch> stands for its sandbox.
func toNode(node int, argv ...string) Step {
	return Do(fmt.Sprintf("to node %d: %s", node, strings.Join(argv, " ")), func(ctx context.Context, r *Run) error {
		events, err := r.Job().Events()
		if err != nil {
			return err
		}
		scratch := ""
		for _, e := range events {
			if e.Number != nodeExecutes || !strings.Contains(e.Headline, fmt.Sprintf("Node %d ", node)) {
				continue
			}
			for _, line := range e.Body {
				if m := scratchLine.FindStringSubmatch(line); m != nil {
					scratch = m[1]
				}
			}
		}
		if scratch == "" {
			return fmt.Errorf("no event tells the sandbox of node %d: %s", node, harness.Headlines(events))
		}
		args := make([]string, len(argv))
		for i, a := range argv {
			args[i] = strings.ReplaceAll(a, "<scratch>", scratch)
		}
		result, err := r.Pool.TryPilot(ctx, r.Side, args...)
		if err == nil && result.Code != 0 {
			err = fmt.Errorf("exit code %d: %s", result.Code, result.Stderr)
		}
		return err
	})
}

// awaitsGo waits until the test says that the node may go on.
const awaitsGo = "while [ ! -e go ]; do sleep 0.1; done\n"

// parallelCases are jobs of the parallel universe, to each of whose nodes a starter belongs.
var parallelCases = []Case{
	{Name: "parallel-facts", Shows: "what the only node of a job finds", Alone: true, Versions: parallelVersions, Facts: true, Fleeting: ofNodes,
		Submit: "universe = parallel\nmachine_count = 1\narguments = facts exit=3\noutput = out"},
	nodes("ends", "the last node ends, then node 0, which decides about the exit code", 2,
		`echo "node $_CONDOR_PROCNO of $_CONDOR_NPROCS: $*, $(cat input), $(echo "$_CONDOR_REMOTE_SPOOL_DIR" | grep -c /spool/)"
echo "by $_CONDOR_PROCNO" >result.$_CONDOR_PROCNO
[ $_CONDOR_PROCNO = 1 ] && exit 4
`+awaitsGo+"exit 7\n", "arguments = one $(Node)",
		Executes(1), Event(nodeTerminated, 1), toNode(0, "touch", "<scratch>/go"), Ends()),
	nodes("first", "node 0 ends while the other runs, which is asked to end", 2,
		"trap 'echo asked >asked; exit 5' TERM\n[ $_CONDOR_PROCNO = 1 ] && "+rest+awaitsGo+"exit 3\n", onEvict,
		Executes(1), toNode(0, "touch", "<scratch>/go"), Ends()),
	nodes("all", "ParallelShutdownPolicy = WAIT_FOR_ALL: the job ends with its last node", 2,
		awaitsGo+"[ $_CONDOR_PROCNO = 0 ] && exit 3\necho on >result\nexit 4\n", `+ParallelShutdownPolicy = "WAIT_FOR_ALL"`,
		Executes(1), toNode(0, "touch", "<scratch>/go"), Event(nodeTerminated, 1), toNode(1, "touch", "<scratch>/go"), Event(nodeTerminated, 2), Ends()),
	nodes("removed", "condor_rm of a job with a node", 1,
		"trap 'echo asked >asked; exit 6' TERM\n"+rest, "", Executes(1), Tool("condor_rm"), Event(harness.EventAborted, 1)),
	twice(nodes("held", "condor_hold and condor_release of a job with a node", 1,
		later+"trap 'echo asked >asked; exit 6' TERM\n"+rest, "", Executes(1), Tool("condor_hold"), Event(harness.EventHeld, 1), Tool("condor_release"), Executes(2))),
	nodes("signal", "a node that dies of a signal", 1, "kill -9 $$\n", ""),
}
