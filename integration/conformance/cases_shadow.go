package conformance

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"podstarter/integration/harness"
	"podstarter/integration/images/probe/facts"
)

// lasting is the name of the process of sharing jobs.
const lasting = "lasting"

// sharing is a job whose files are not transferred: a shadow of 25.14 that has
// come back accepts no files itself any more (file_transfer.cpp:stopServer). The
// job has no child and waits for input that nobody writes. When it is told to end,
// it exits with code 7.
const sharing = `executable = /bin/sh
transfer_executable = False
arguments = "-c 'trap ''exit 7'' TERM; f=/tmp/$$.fifo; mkfifo $f && exec 3<>$f && rm $f; printf ` + lasting + ` >/proc/$$/comm; while :; do read x <&3; done'"
should_transfer_files = NO
when_to_transfer_output =
remote_initialdir = /tmp
MY.FileSystemDomain = TARGET.FileSystemDomain
`

// told waits for the first update. After it the startd, which returning shadows
// ask, knows where the starter is, under stock too.
func told() Step { return Event(harness.EventImageSize, 1) }

// telling is a job that notes that it was told to end, and exits with code 7.
const telling = `arguments = "trap=caught:7 ready forever"
output = out
error = err
`

var shadowCases = []Case{
	{
		Name:   "shadow-stopped",
		Shows:  "the job ends while its shadow does not answer",
		Submit: telling,
		Steps: []Step{
			Ready(), Kill("the shadow", (*Run).Shadow, unix.SIGSTOP),
			KillPayload(facts.Ready, unix.SIGTERM), Gone(),
			Kill("the shadow", (*Run).Shadow, unix.SIGCONT), Ends(),
		},
	},
	{
		Name:   "reconnect",
		Shows:  "the connection to the shadow breaks while the job runs",
		Submit: sharing, Fleeting: cutFleeting,
		Steps: []Step{
			Runs(lasting), told(), cutOff(), Event(harness.EventReconnected, 1),
			KillPayload(lasting, unix.SIGTERM), Ends(),
		},
	},
	{
		Name:   "reconnect-twice",
		Shows:  "and once more",
		Submit: sharing, Fleeting: cutFleeting,
		Steps: []Step{
			Runs(lasting), told(), cutOff(), Event(harness.EventReconnected, 1), cutOff(), Event(harness.EventReconnected, 2),
			KillPayload(lasting, unix.SIGTERM), Ends(),
		},
	},
	Case{
		Name:   "reconnect-transfer",
		Shows:  "the same with files to send back: the shadow has forgotten the key for them, and the job runs again",
		Submit: telling, Patience: 2 * Patience,
		Steps: []Step{
			Ready(), told(), cutOff(), Event(harness.EventReconnected, 1), KillPayload(facts.Ready, unix.SIGTERM),
			Executes(2), Ready(), KillPayload(facts.Ready, unix.SIGTERM), Ends(),
		},
	}.only("25.14+25.14"), // one of 23.9 forgets nothing
	{
		Name:   "ended-disconnected",
		Shows:  "the job ends while the shadow is away, and its exit is kept",
		Submit: sharing,
		Steps: []Step{
			Runs(lasting), told(), Kill("the shadow", (*Run).Shadow, unix.SIGSTOP), cutOff(),
			KillPayload(lasting, unix.SIGTERM), Gone(),
			Kill("the shadow", (*Run).Shadow, unix.SIGCONT), Ends(),
		},
	},
	{
		Name:   "lease-over",
		Shows:  "the shadow stays away longer than the job's lease: the job is killed, and runs again",
		Submit: sharing + "+JobLeaseDuration = 5\n",
		Steps: []Step{
			Runs(lasting), told(), Kill("the shadow", (*Run).Shadow, unix.SIGSTOP), cutOff(), Gone(),
			Kill("the shadow", (*Run).Shadow, unix.SIGCONT), Executes(2),
			Runs(lasting), KillPayload(lasting, unix.SIGTERM), Ends(),
		},
		Fleeting: byChance("the shadow counts in whole seconds, so it may or may not ask once more for the starter, which has gone",
			"024       Job *", "004   Reason: Job *", "004   TimeSlotBusy*",
			"totaljobreconnectattempts", "jobcurrentreconnectattempt", "activationduration", "activationteardownduration"),
	},
}

// cutOff breaks a shadow's connections to the execution point. Behind a broker, the execution
// point has opened them.
func (r *Run) cutOff(shadow harness.Process) (int, error) {
	if r.Pool.Network != harness.HostNetwork {
		return harness.BreakAllOf(shadow)
	}
	port, err := r.Pool.Port(r.Side)
	if err != nil {
		return 0, err
	}
	return harness.BreakOff(shadow, port)
}

// cutOff breaks the connection between the job's shadow and its starter, as a
// network does that forgets it.
func cutOff() Step {
	return Do("the connection to the shadow breaks", func(_ context.Context, r *Run) error {
		shadow, err := r.Shadow()
		if err != nil {
			return err
		}
		n, err := r.cutOff(shadow)
		if err == nil && n == 0 {
			err = fmt.Errorf("the shadow of job %s has no connection to the execution point", r.Job().ID())
		}
		return err
	})
}

// shadowSetup is empty until a case needs configuration.
var shadowSetup = Setup{}

// cutFleeting is what a cut connection leaves to the clock.
var cutFleeting = slices.Concat(
	byChance("the shadow may be gone when the startd hears of the end", "starter_disconnected_from_submit_node"),
	withOlder("the shadow tries again when the starter has not noticed the cut yet", "totaljobreconnectattempts"))
