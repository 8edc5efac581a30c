package conformance

import (
	"time"

	"podstarter/integration/harness"
)

// policySetup makes shadow and schedd check periodic expressions often.
var policySetup = Setup{Submit: "PERIODIC_EXPR_INTERVAL = 2\nMAX_PERIODIC_EXPR_INTERVAL = 2\n"}

// since is true some seconds after the job has begun to run.
const since = "JobCurrentStartExecutingDate =!= undefined && time() > JobCurrentStartExecutingDate + 2"

// policyCases are about what the queue does with a job that runs or has ended.
var policyCases = []Case{
	{Name: "periodic-hold", Fleeting: policyFleeting, Shows: "held by periodic_hold while it runs, with reason and subcode",
		Submit: "arguments = ready forever\noutput = out\nperiodic_hold = " + since + "\nperiodic_hold_reason = \"ran long enough\"\nperiodic_hold_subcode = 42",
		Steps:  []Step{Event(harness.EventHeld, 1)}},
	{Name: "periodic-remove", Fleeting: policyFleeting, Shows: "removed by periodic_remove while it runs",
		Submit: "arguments = ready forever\noutput = out\nperiodic_remove = " + since,
		Steps:  []Step{Event(harness.EventAborted, 1)}},
	{Name: "periodic-release", Shows: "held at its end, released by periodic_release, and run again",
		Submit: "arguments = out=hello exit=3\noutput = out\non_exit_hold = NumJobStarts < 2\nperiodic_release = HoldReasonCode == 3",
		Steps:  []Step{Event(harness.EventReleased, 1), Executes(2), Ends()}},
	{Name: "on-exit-hold", Shows: "held at its end by on_exit_hold, with reason and subcode",
		Submit: "arguments = file=new:1 exit=3\noutput = out\non_exit_hold = ExitCode == 3\non_exit_hold_reason = strcat(\"code \", ExitCode)\non_exit_hold_subcode = 7"},
	{Name: "on-exit-remove", Shows: "queued again at its end until on_exit_remove is true",
		Submit: "arguments = file=new:1 exit=3\noutput = out\non_exit_remove = NumJobStarts >= 2"},
	{Name: "on-exit-remove-signal", Shows: "queued again after a signal",
		Submit: "arguments = signal=9\noutput = out\non_exit_remove = (ExitBySignal == false) || NumJobStarts >= 2"},
	{Name: "max-retries", Shows: "tried again because of its exit code, once",
		Submit: "arguments = exit=1\noutput = out\nmax_retries = 1"},
	{Name: "retry-until", Shows: "tried again until an exit code",
		Submit: "arguments = exit=9\noutput = out\nmax_retries = 3\nretry_until = ExitCode == 9"},
	{Name: "success-exit-code", Shows: "an exit code that means success",
		Submit: "arguments = exit=7\noutput = out\nmax_retries = 2\nsuccess_exit_code = 7"},
	{Name: "execute-duration", Fleeting: policyFleeting, Shows: "held because it runs longer than allowed_execute_duration",
		Submit: "arguments = ready forever\noutput = out\nallowed_execute_duration = 3",
		Steps:  []Step{Event(harness.EventHeld, 1)}},
	// Long enough for a container to come on a busy machine.
	{Name: "job-duration", Fleeting: policyFleeting, Shows: "held because it takes longer than allowed_job_duration",
		Submit: "arguments = ready forever\noutput = out\nallowed_job_duration = 10",
		Steps:  []Step{Event(harness.EventHeld, 1)}},
	{Name: "held-at-submit", Shows: "held at submission, released, and run",
		Submit: "hold = True\narguments = out=hello\noutput = out",
		Steps:  []Step{Tool("condor_release"), Ends()}},
	{Name: "hold-release", Shows: "held while it runs, released, and run again",
		Submit: "arguments = resume=kept:0 file=kept:1 ready forever\nwhen_to_transfer_output = ON_EXIT_OR_EVICT\noutput = out",
		Steps:  []Step{Ready(), Tool("condor_hold", "-reason", "to look at it", "-subcode", "12", "<job>"), Event(harness.EventHeld, 1), Gone(), Tool("condor_release"), Executes(2)}},
	{Name: "remove-cluster", Shows: "a cluster of two jobs removed while both run", Pools: []string{harness.SeveralSlots},
		Submit: "arguments = trap=caught:0 ready forever\noutput = out", Count: 2,
		Steps: []Step{AllReady(), Tool("condor_rm", "<cluster>")}},
	{Name: "qedit", Shows: "an attribute changed while the job runs, as the history has it",
		Submit: "arguments = ready sleep=2s\noutput = out",
		Steps:  []Step{Ready(), Tool("condor_qedit", "<job>", "MyOwn", "17"), Ends()}},
	{Name: "signals-slowly", Shows: "a job that ends slowly after condor_rm", Patience: 3 * time.Minute,
		Submit: "arguments = ignore ready forever\noutput = out\njob_max_vacate_time = 4",
		Steps:  []Step{Ready(), Tool("condor_rm"), Event(harness.EventAborted, 1), Gone().About(4 * time.Second)}},
}

var policyFleeting = byChance("they grow each time the shadow finds the policy true before the job has ended",
	"numholds", "numholdsbyreason", "numvacates", "numvacatesbyreason")
