package conformance

import (
	"slices"
	"strings"
	"time"

	"podstarter/integration/harness"
)

// steeringSetup lets jobs ask the startd to preempt them, or to put them on hold,
// when their first run has begun.
var steeringSetup = Setup{Execute: `PREEMPT = TARGET.JobState =?= "Running" && (TARGET.ConformanceHold =?= True || (TARGET.ConformancePreempt =?= True && (TARGET.NumJobStarts ?: 0) == 0))
WANT_HOLD = TARGET.ConformanceHold =?= True
WANT_HOLD_REASON = "the site does not want it"
WANT_HOLD_SUBCODE = 7
WANT_VACATE = True
PERIODIC_CHECKPOINT = TARGET.ConformanceCheckpoint =?= True && TARGET.JobState =?= "Running" && time() - LastPeriodicCheckpoint >= 3
KILLING_TIMEOUT = 5
STARTD_JOB_ATTRS = $(STARTD_JOB_ATTRS) ConformanceClosing
CLAIM_WORKLIFE = ifThenElse(ConformanceClosing =?= True, 0, 1200)
`}

// Parts of scripts.
const (
	// ready gives the shell the name that [Ready] waits for.
	ready = "printf probe-ready >/proc/$$/comm\n"
	// rest makes it wait there; traps run between two naps.
	rest = "while :; do sleep 0.1; done\n"
	// later is what a job does in its second run.
	later = `starts=$(sed -n 's/^NumJobStarts = //p' "$_CONDOR_JOB_AD")
if [ "${starts:-0}" -gt 0 ]; then
	echo "once more, with $(ls | grep -v '^_condor\|^job' | tr '\n' ' ')"
	cat caught state 2>/dev/null
	exit 0
fi
`
)

// traps notes the signals that come, in their order, and ends when no more have
// come for a moment.
func traps(signals ...string) string {
	var b strings.Builder
	for _, s := range signals {
		b.WriteString("trap 'echo " + s + " >>caught' " + s + "\n")
	}
	return b.String()
}

// untilCaught ends some time after the first signal, so that it notes a second one
// too.
const untilCaught = `while [ ! -e caught ]; do sleep 0.1; done
sleep 0.5; sleep 0.5; sleep 0.5
exit 3
`

// steered is a job of a script.
func steered(name, shows, script, submit string, steps ...Step) Case {
	return Case{Name: name, Shows: shows, Files: []harness.File{Script("job.sh", script)},
		Submit: "executable = job.sh\noutput = out\n" + submit, Steps: steps,
		Fleeting: napping}
}

var napping = byChance("a nap of the script may be counted or not, and the sandbox may have been measured by then",
	"numpids", "010   Number of processes*", "stdoutmtime")

var uncounted = byChance("the process may have been killed when processes are counted", "NumPids")

// lossy is for a case whose output stock may lose, whole or in part.
func lossy(c Case) Case {
	c.Fleeting = slices.Concat(c.Fleeting, byChance("stock may lose the output, whole or in part", "bytessent", "005   * Bytes Sent By Job", "transferoutputstats"))
	return c
}

// twice is for a case whose job runs twice.
func twice(c Case) Case {
	c.Fleeting = slices.Concat(c.Fleeting, byChance("the schedd's timing decides how often a shadow finds its claim gone before the second run",
		"jobruncount", "numjobmatches", "numshadowstarts", "numvacates*"))
	return c
}

// slotName is the job's slot, for the shell in an execution point.
const slotName = `"<slot>@$(condor_config_val STARTD_NAME)@$(condor_config_val FULL_HOSTNAME)"`

const onEvict = "when_to_transfer_output = ON_EXIT_OR_EVICT\n"

// steeringCases are what startd, shadow and users do to a job that runs or is
// about to.
var steeringCases = []Case{
	twice(steered("held", "condor_hold of a running job that saves what it has done, and condor_release",
		later+traps("TERM")+ready+untilCaught, onEvict,
		Ready(), Tool("condor_hold"), Event(harness.EventHeld, 1), Gone(), Tool("condor_release"), Event(harness.EventReleased, 1))),
	twice(steered("kill-sig", "the signal of kill_sig",
		later+traps("TERM", "USR1", "USR2", "WINCH")+ready+untilCaught, onEvict+"kill_sig = SIGUSR1\nhold_kill_sig = SIGWINCH",
		Ready(), Tool("condor_vacate_job"), Executes(2))),
	twice(steered("remove-kill-sig", "remove_kill_sig takes precedence over kill_sig, whatever ends the job",
		later+traps("TERM", "USR1", "USR2", "WINCH")+ready+untilCaught, onEvict+"kill_sig = SIGUSR1\nremove_kill_sig = SIGUSR2\nhold_kill_sig = 28",
		Ready(), Tool("condor_vacate_job"), Executes(2))),
	steered("soft-ignored", "a job that ignores SIGTERM is killed after job_max_vacate_time",
		"trap '' TERM\n"+ready+rest, onEvict+"job_max_vacate_time = 3",
		Ready(), Tool("condor_rm"), Gone().About(3*time.Second)),
	steered("removed-at-once", "without want_graceful_removal a job is killed",
		"trap '' TERM\n"+ready+rest, "want_graceful_removal = False\njob_max_vacate_time = 60",
		Ready(), Tool("condor_rm"), Gone()),
	twice(steered("vacated-fast", "condor_vacate_job -fast: no signal but SIGKILL, and nothing is saved",
		later+traps("TERM")+"echo made >state\n"+ready+rest, onEvict,
		Ready(), Tool("condor_vacate_job", "-fast", "<job>"), Executes(2))),
	steered("suspended", "condor_suspend and condor_continue, each twice",
		ready+"while [ ! -e go ]; do sleep 0.1; done\necho on\n", "",
		Ready(), Tool("condor_suspend"), Event(harness.EventSuspended, 1), Tool("condor_suspend", "<job>"),
		Tool("condor_continue"), Event(harness.EventUnsuspended, 1), Tool("condor_continue", "<job>"),
		EP("touch", "<scratch>/go")),
	twice(steered("suspended-held", "a suspended job is continued so that it can be asked to end",
		later+traps("TERM")+ready+untilCaught, onEvict,
		Ready(), Tool("condor_suspend"), Event(harness.EventSuspended, 1),
		Tool("condor_hold"), Event(harness.EventHeld, 1), Gone(), Tool("condor_release"), Event(harness.EventReleased, 1))),
	suspendedKilled(),
	vacating(twice(steered("startd-vacated", "condor_vacate at the execution point",
		later+traps("TERM")+ready+untilCaught, onEvict,
		Ready(), Quietly(EP("sh", "-c", "condor_vacate "+slotName)), Executes(2)))),
	twice(steered("preempted", "PREEMPT of the startd",
		later+traps("TERM")+ready+untilCaught, onEvict+"+ConformancePreempt = True", Executes(2))),
	steered("wanted-held", "WANT_HOLD of the startd, and hold_kill_sig",
		traps("TERM", "USR2")+ready+untilCaught, "+ConformanceHold = True\nhold_kill_sig = SIGUSR2", Event(harness.EventHeld, 1)),
	twice(steered("starter-term", "SIGTERM to the starter; before that SIGUSR2 and SIGHUP, which have no effect",
		later+traps("TERM")+ready+untilCaught, onEvict,
		Ready(), signalStarter("USR2"), signalStarter("HUP"), signalStarter("TERM"), Executes(2))),
	twice(steered("starter-quit", "SIGQUIT to the starter",
		later+traps("TERM")+ready+rest, onEvict, Ready(), signalStarter("QUIT"), Executes(2))),
	steered("starter-usr1", "SIGUSR1 to the starter",
		later+traps("TERM", "USR2")+ready+untilCaught, "remove_kill_sig = SIGUSR2", Ready(), signalStarter("USR1"), Ends()),
	steered("checkpoint", "a job that checkpoints itself twice, without a list of files",
		checkpointing("3"), "error = err\ncheckpoint_exit_code = 85"),
	twice(steered("checkpoint-evicted", "a killed job continues from its checkpoint",
		checkpointing("9"), "checkpoint_exit_code = 85\ntransfer_checkpoint_files = state",
		Runs("probe-stays"), Tool("condor_vacate_job", "-fast", "<job>"), Executes(2))),
	steered("checkpoint-ordered", "a job that the startd tells, with its checkpoint signal, to save a checkpoint",
		"trap 'echo saved >state; exit 77' USR1\ncat state && exit 0\n"+rest,
		"checkpoint_exit_code = 77\n+WantCheckpointSignal = True\n+CheckpointSig = \"SIGUSR1\"\n+ConformanceCheckpoint = True\ntransfer_checkpoint_files = state"),
	steered("checkpoint-broken", "a job that does not end as it promised when it is sent that signal",
		"trap 'exit 5' USR1\n"+rest,
		"checkpoint_exit_code = 77\n+WantCheckpointSignal = True\n+CheckpointSig = \"SIGUSR1\"\n+ConformanceCheckpoint = True",
		Event(harness.EventHeld, 1)),
	twice(steered("checkpoint-vacated", "a job that answers the order to end with a checkpoint is not started again",
		later+"trap 'echo TERM >caught; exit 85' TERM\n"+ready+rest, onEvict+"checkpoint_exit_code = 85",
		Ready(), Tool("condor_vacate_job"), Executes(2))),
	newer(twice(steered("checkpoint-closing", "a job whose claim ends when it has saved a checkpoint",
		"cat state && exit 0\necho saved >state\nsleep 2\nexit 85\n", "checkpoint_exit_code = 85\ntransfer_checkpoint_files = state\n+ConformanceClosing = True",
		Executes(2)))),
	drained(),
	lossy(vacating(late("ordered-late", "condor_vacate at the execution point during the transfer of output: the job stays ended"))),
	steered("deferred", "deferral_time: the job begins at that time",
		deferredScript, "deferral_time = (QDate + 6)\ndeferral_window = 60"),
	newer(steered("deferral-missed", "a job that comes too late for its deferral_time",
		"echo never\n", "deferral_time = ifThenElse(RemoteHost is undefined, QDate + 60, 1)", Event(harness.EventHeld, 1))),
	steered("deferral-removed", "condor_rm of a job that waits for its deferral_time",
		"echo never\n", "deferral_time = (QDate + 250)",
		Until("TransferInFinished isnt undefined"), Tool("condor_rm"), Event(harness.EventAborted, 1)),
}

// checkpointing is a job that counts its runs and ends all except the last as a
// checkpoint. If there are more, it lingers in the third run of its first
// activation.
func checkpointing(last string) string {
	return later + `n=$(cat state 2>/dev/null || echo 0)
n=$((n + 1))
echo "run $n"
echo "words $n" >&2
echo $n >state
[ $n -ge ` + last + ` ] && exit 0
[ $n -lt 3 ] && exit 85
printf probe-stays >/proc/$$/comm
` + rest
}

// deferredScript tells whether the time has come.
const deferredScript = `queued=$(sed -n 's/^QDate = //p' "$_CONDOR_JOB_AD")
late=$(($(date +%s) - queued - 6))
[ $late -ge 0 ] && [ $late -lt 60 ] && echo in time
`

// late is a job whose output is blocked, by a pipe that nobody reads, until the
// startd has given its order.
func late(name, shows string) Case {
	c := steered(name, shows,
		ready+"while [ ! -e go ]; do sleep 0.1; done\necho made >made\n",
		"transfer_output_files = made\ntransfer_output_remaps = \"made=../pipe.$(Cluster)\"",
		Ready(), Shell("mkfifo ../pipe.<cluster>"), EP("touch", "<scratch>/go"),
		Event(harness.EventFileTransfer, 3),
		Quietly(EP("sh", "-c", "condor_vacate "+slotName+`
until condor_status `+slotName+` -af State | grep Preempting; do sleep 0.1; done`)),
		arrives())
	c.Fleeting = slices.Concat(c.Fleeting, byChance("they name the cluster", "transferoutputremaps"))
	return c
}

// vacating is a case that uses condor_vacate, which finds a slot by its name only
// if both sides are new.
func vacating(c Case) Case {
	c.Versions = []string{"25.14+25.14"}
	return c
}

// newer is a case in which older starters behave differently from the start.
func newer(c Case) Case {
	c.Versions = []string{"25.14+*"}
	return c
}

// suspendedKilled ends as soon as its process is told to.
func suspendedKilled() Case {
	c := steered("suspended-killed", "a suspended job is killed without being continued",
		ready+rest, "want_graceful_removal = False",
		Ready(), Tool("condor_suspend"), Event(harness.EventSuspended, 1), Tool("condor_rm"), Gone())
	c.Fleeting = slices.Concat(c.Fleeting, withOlder("the schedd may hear of the end before it hears of the suspension, and of what was measured by then",
		"lastjobstatus", "numjobstarts", "totalsuspensions", "memoryusage", "residentsetsize*", "scratchdirfilecount",
		"block*", "recentblock*", "statslifetimestarter", "recentstatslifetimestarter"))
	return c
}

// signalStarter sends a signal to the starter, whose process number is in the name
// of the sandbox.
func signalStarter(name string) Step {
	return Quietly(EP("sh", "-c", `p="<scratch>"; p="${p##*/dir_}"; kill -`+name+` "${p%%/*}"`))
}

// drained is a job whose execution point is drained, and then no longer drained,
// in another way in each of its first runs.
func drained() Case {
	const name = "$(condor_config_val STARTD_NAME)@$(condor_config_val FULL_HOSTNAME)"
	drain := func(how string) Step { return Quietly(EP("sh", "-c", "condor_drain "+how+" "+name)) }
	c := twice(steered("drained", "condor_drain -graceful, and then -fast, which does not ask the job",
		"starts=$(sed -n 's/^NumJobStarts = //p' \"$_CONDOR_JOB_AD\")\n[ \"${starts:-0}\" -gt 1 ] && { cat caught; exit 0; }\n"+
			"[ \"${starts:-0}\" -gt 0 ] && mv caught before\n"+
			traps("TERM")+ready+untilCaught, onEvict,
		Ready(), drain("-graceful"), Event(harness.EventEvicted, 1), drain("-cancel"), Executes(2),
		Ready(), drain("-fast"), Event(harness.EventEvicted, 2), drain("-cancel"), Executes(3)))
	c.Alone = true
	return c
}
