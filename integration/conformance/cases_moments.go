package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"podstarter/classads"
	"podstarter/integration/harness"
)

// momentsSetup has hooks that take their time.
var momentsSetup = Setup{Execute: hookKnobs("WAITSBEFORE_HOOK_PREPARE_JOB_BEFORE_TRANSFER = hooks/waits\nWAITSAFTER_HOOK_PREPARE_JOB = hooks/waits\n" +
	"WAITSAWHILE_HOOK_PREPARE_JOB = hooks/waits-a-while\n"),
	Programs: []harness.File{Script("hooks/waits", waitingHook), Script("hooks/waits-a-while", strings.Replace(waitingHook, "exec ", "", 1)+"exit 0\n")},
}

// preparing is a job whose hook is slow in the first run. The steps follow when the
// hook has begun.
func preparing(name, shows, keyword string, steps ...Step) Case {
	c := twice(steered(name, shows, "ls | grep -v '^_condor'\n", "+HookKeyword = "+classads.QuoteOld(keyword),
		append([]Step{Wait("the hook", hookRuns)}, steps...)...))
	c.Fleeting = slices.Concat(c.Fleeting,
		byChance("the last update may have it, or there is none", "scratchdirfilecount"),
		byChance("the shadow hears of the order from the startd or the starter, whoever is first", "004   Error from * the startd asked for the end of the job"))
	return c
}

// suspendedPreparing is a job that would soon end if it did not wait for a file: too
// soon for the signal that stops it.
func suspendedPreparing() Case {
	c := preparing("suspended-preparing", "condor_suspend then: the job begins suspended, and runs after condor_continue", "waitsawhile",
		Tool("condor_suspend"), logged("slot*", "waitsawhile", "[Ss]uspend"), Quietly(Do("the hook ends", endHook)),
		Event(harness.EventSuspended, 1), Tool("condor_continue"), EP("touch", "<scratch>/go"), Ends())
	c.Files = []harness.File{Script("job.sh", ready+"while [ ! -e go ]; do sleep 0.1; done\nls | grep -v '^_condor'\n")}
	return c
}

// hookRuns waits until the job's hook runs. The hook has the job's number as an
// argument of a command.
func hookRuns(ctx context.Context, r *Run) error {
	_, err := harness.WaitSome(ctx, 1, r.napping())
	return err
}

// endHook ends a hook that waits for its nap to end.
func endHook(_ context.Context, r *Run) error {
	nap, err := harness.One("hook's nap", r.napping())
	if err != nil {
		return err
	}
	return harness.Kill(nap, unix.SIGTERM)
}

// napping keeps the process of the job's hook that sleeps.
func (r *Run) napping() func(harness.Process) bool {
	inside := r.Pool.Inside(r.Side)
	return func(q harness.Process) bool {
		return q.Comm == "sleep" && slices.Contains(q.Args, hookNap(r.Job().Cluster)) && inside(q)
	}
}

// hookNap is how long the hook of a cluster's job sleeps, in seconds. No other process
// sleeps for the same number.
func hookNap(cluster int) string { return fmt.Sprintf("100.%06d", cluster) }

// waitingHook sleeps in the first run.
const waitingHook = `ad=$(cat)
starts=$(echo "$ad" | sed -n 's/^NumShadowStarts = //p')
[ "${starts:-0}" -gt 1 ] && exit 0
exec sleep 100.$(printf %06d $(echo "$ad" | sed -n 's/^ClusterId = //p'))
`

// incoming is a job whose input arrives slowly. The steps follow when the transfer has
// begun; after "comes" the input of the next run arrives at once.
func incoming(name, shows string, steps ...Step) Case {
	return twice(Case{
		Name: name, Shows: shows, Files: []harness.File{Script("job.sh", "cat large\n"), {Name: "large", Sparse: 600 << 20}},
		Submit: "executable = job.sh\ntransfer_input_files = large\nrequest_disk = 1G\noutput = out\n",
		Steps:  append([]Step{Event(harness.EventFileTransfer, 1)}, steps...),
	})
}

// comes makes the input of [incoming] arrive without delay the next time.
func comes() Step { return Quietly(Shell("echo hello >small; mv small large")) }

// outgoing is a job that has ended and whose output is blocked by a pipe that nobody
// reads. The steps follow when the transfer has begun; "goesOut" unblocks it.
func outgoing(name, shows, submit string, steps ...Step) Case {
	c := twice(steered(name, shows,
		"starts=$(sed -n 's/^NumJobStarts = //p' \"$_CONDOR_JOB_AD\")\nif [ \"${starts:-0}\" -gt 0 ]; then echo again >made; exit 4; fi\n"+ready+"while [ ! -e go ]; do sleep 0.1; done\necho made >made\n",
		"transfer_output_files = made\ntransfer_output_remaps = \"made=../pipe.$(Cluster)\"\n"+submit,
		append([]Step{
			Ready(), Quietly(Shell("mkfifo ../pipe.<cluster>")), EP("touch", "<scratch>/go"),
			Event(harness.EventFileTransfer, 3),
		}, steps...)...))
	c.Fleeting = slices.Concat(c.Fleeting, byChance("they name the cluster", "transferoutputremaps"))
	c.Versions = []string{"25.14+*"} // whose starter's log tells of orders
	return c
}

// halfGone is a case in which timing decides how much output of the first run arrived.
func halfGone(c Case) Case {
	c.Fleeting = slices.Concat(c.Fleeting, byChance("how much output of the first run has arrived, and whether it has ended",
		"bytessent", "transferoutputstats", "numjobcompletions", "numoutputtransferstarts", "activation*", "jobcurrent*",
		"040 * transferring output files", "004   TimeSlotBusy*", "004   * Run Bytes Sent By Job", "005   * Total Bytes Sent By Job"))
	return c
}

// passedOn waits until the starter's log says that it was told to end the job.
func passedOn() Step { return logged("<slot>", "with ID: <job>$", " code=[0-9]+ ") }

// logged waits for a line that matches a pattern in the log of a slot, within the part
// that the last starter with a line of the first pattern wrote.
func logged(slot, whose, pattern string) Step {
	return Quietly(EP("sh", "-c", `until awk '/STARTING UP/ {mine = 0} /`+whose+`/ {mine = 1; told = 0} mine && /`+pattern+`/ {told = 1} END {exit !told}' "$(condor_config_val LOG)"/StarterLog.`+slot+`
do sleep 0.1; done`))
}

// arrives lets the output of [outgoing] through; the next time it is a file.
//
// A file takes the place of the pipe at once: the shadow has yet to set the mode, by the name.
func arrives() Step {
	return Shell("cat ../pipe.<cluster>; : >../file.<cluster>; mv ../file.<cluster> ../pipe.<cluster>")
}

// momentsCases are about orders that arrive while a job is not simply running.
var momentsCases = []Case{
	preparing("held-preparing", "condor_hold while a hook prepares the job before its input arrives", "waitsbefore",
		Tool("condor_hold"), Event(harness.EventHeld, 1), Tool("condor_release"), Executes(1)),
	preparing("removed-preparing", "condor_rm then", "waitsbefore",
		Tool("condor_rm"), Event(harness.EventAborted, 1)),
	preparing("vacated-preparing", "condor_vacate_job then", "waitsbefore",
		Tool("condor_vacate_job"), Executes(1)),
	preparing("vacated-prepared", "condor_vacate_job while a hook prepares the job after its input has arrived", "waitsafter",
		Tool("condor_vacate_job"), Executes(1)),
	preparing("fast-prepared", "condor_vacate_job -fast then", "waitsafter",
		Tool("condor_vacate_job", "-fast", "<job>"), Executes(1)),
	suspendedPreparing(),
	incoming("held-coming", "condor_hold during the transfer of input, and condor_release",
		Tool("condor_hold"), Event(harness.EventHeld, 1), comes(), Tool("condor_release"), Executes(1)),
	heldGoing(),
	// The stock starter loses the output at times.
	halfGone(outgoing("removed-going", "condor_rm then", "",
		Tool("condor_rm"), passedOn(), arrives(), Event(harness.EventAborted, 1))).onRequest(),
	halfGone(outgoing("vacated-going", "condor_vacate_job then: the job runs again", "",
		Tool("condor_vacate_job"), passedOn(), arrives(), Executes(2), Ends(), arrives())),
	removedForcibly(),
	steered("suspended-status", "what the queue says of a suspended job, and afterwards",
		ready+"while [ ! -e go ]; do sleep 0.1; done\n", "",
		Ready(), Tool("condor_suspend"), Until("JobStatus == 7"), Tool("condor_q", "<job>", "-af", "JobStatus", "LastSuspensionTime > 0", "TotalSuspensions"),
		Tool("condor_continue"), Until("JobStatus == 2"), EP("touch", "<scratch>/go")),
	steered("checkpoint-signal", "a job that exits from its checkpoints by a signal",
		"n=$(cat state 2>/dev/null || echo 0)\necho $((n + 1)) >state\n[ $n -lt 2 ] && kill -USR2 $$\ncat state\n",
		"+WantFTOnCheckpoint = True\n+SuccessCheckpointExitBySignal = True\n+SuccessCheckpointExitSignal = 12\ntransfer_checkpoint_files = state"),
	{Name: "stdin-missing", Shows: "standard input that cannot be transferred",
		Submit: "arguments = out=hello\noutput = out\ninput = /no/such/input\ntransfer_input = False", Steps: []Step{Event(harness.EventHeld, 1)}, Stuck: true},
	unopened("stdout-nowhere", "standard output", "output = /no/such/directory/out"),
	unopened("stderr-nowhere", "standard error", "output = /dev/null\nerror = /no/such/directory/err").onRequest(),
	unopened("stdin-nowhere", "standard input", "+In = \"/no/such/directory/in\"\n+TransferIn = False").onRequest(), // condor_submit checks input
	{Name: "common-files", Shows: "common files of the cluster's jobs",
		Submit: "executable = job.sh\n+CommonInputFiles = \"shared\"\ntransfer_input_files = own\noutput = out", Fleeting: byChance("they name the cluster", "requestedcatalogids", "requestedcatalogs"), Files: []harness.File{
			Script("job.sh", "cat own shared\n"), {Name: "own", Content: []byte("own\n")}, {Name: "shared", Content: []byte("shared\n")}}},
	{Name: "common-attacked", Pools: []string{harness.Partitionable}, Versions: withCommonFiles, Shows: "a job that tries to change a common file under the others",
		Submit:   "executable = job.sh\n+CommonInputFiles = \"shared\"\noutput = out\ntransfer_output_files = \"\"",
		Fleeting: byChance("they name the cluster", "requestedcatalogids", "requestedcatalogs"), Files: []harness.File{
			Script("job.sh", "try() { \"$@\" 2>/dev/null && echo \"did: $*\"; }\ntry chmod 666 shared\ntry dd of=shared conv=notrunc if=/dev/null\ntry touch -d @1 shared\ntry rm shared\n"),
			{Name: "shared", Content: []byte("shared\n")}}},
	{Name: "common-catalogs", Pools: []string{harness.Partitionable}, Versions: withCommonFiles, Shows: "two catalogs of common files, one with a directory, and a job that replaces one of the files",
		Submit:   "executable = job.sh\n+CommonInputCatalogs = \"A, B\"\n+_x_catalog_A = \"first\"\n+_x_catalog_B = \"tree\"\noutput = out\nerror = err",
		Fleeting: byChance("they name the cluster", "requestedcatalogids", "requestedcatalogs"), Files: []harness.File{
			Script("job.sh", "cat first tree/leaf\n(echo x >>first) 2>/dev/null && echo written\nrm -f first && echo mine >first\n"),
			{Name: "first", Content: []byte("first\n")}, {Name: "tree/leaf", Content: []byte("leaf\n")}}},
	gpus(),
}

// withCommonFiles are the versions that fetch common files once.
var withCommonFiles = []string{"25.14+25.14"}

// unopened is a job one of whose standard files is in a missing directory.
func unopened(name, file, submit string) Case {
	return Case{Name: name, Shows: file + " in a missing directory, without a transfer", Steps: []Step{Event(harness.EventHeld, 1)}, Stuck: true,
		Submit: "arguments = out=hello\nexecutable = /bin/echo\ntransfer_executable = False\nshould_transfer_files = NO\n" +
			"MY.FileSystemDomain = TARGET.FileSystemDomain\nremote_initialdir = /tmp\n" + submit}
}

// heldGoing is a job that is held during the transfer of its output. The schedd
// releases the claim of such a job and does not wait until all of its output has
// arrived.
func heldGoing() Case {
	c := outgoing("held-going", "condor_hold during the transfer of output", "",
		Tool("condor_hold"), passedOn(), arrives(), Event(harness.EventHeld, 1))
	c.Fleeting = slices.Concat(c.Fleeting, byChance("how much output has arrived before the hold, and what the shadow has heard by then",
		"bytessent", "transferoutputstats", "activation*", "exitcode", "jobcurrent*", "numjobcompletions", "spooledoutputfiles",
		"starter_disconnected_from_submit_node", "vacatereason*", "out", "004   * Run Bytes Sent By Job", "004   TimeSlotBusy*"))
	return c
}

// removedForcibly ends when its starter says so. The second order kills the shadow,
// which may not have passed the first one on, nor told the schedd that the job has
// begun.
func removedForcibly() Case {
	c := steered("removed-forcibly", "condor_rm -forcex of a job that does not end",
		"trap '' TERM\n"+ready+rest, "job_max_vacate_time = 3",
		Ready(), Tool("condor_rm"), logged("<slot>", "with ID: <job>$", "all jobs|Sending SIG"), Tool("condor_rm", "-forcex", "<job>"),
		Event(harness.EventAborted, 1), Gone())
	c.Fleeting = slices.Concat(c.Fleeting, byChance("the second order kills the shadow, which may not have told the schedd that the job had started", "numjobstarts"),
		withOlder("nor what was measured, and how the job ended",
			"006 *", "block*", "recentblock*", "memoryusage", "residentsetsize*", "scratchdirfilecount", "statslifetimestarter", "recentstatslifetimestarter",
			"activation*", "exitbysignal", "exitreason", "exitsignal", "starter_disconnected_from_submit_node"))
	return c
}

// gpus is a job on an execution point whose slots are said to have two GPUs.
func gpus() Case {
	const file = `f=$(condor_config_val LOCAL_CONFIG_DIR | sed 's/.*[, ]//')/99-gpus.conf; host=$(condor_config_val STARTD_NAME)@$(condor_config_val FULL_HOSTNAME); `
	const until = `condor_reconfig -startd; until [ "$(condor_status -direct $host -af AssignedGPUs | sort -u)" = `
	return Case{Name: "gpus", Shows: "variables that name the GPUs, and what the sandbox says about them", Alone: true,
		Files: []harness.File{Script("job.sh", `env | grep -i -e gpu -e cuda -e nvidia | sort
grep -c '^AssignedGPUs = ' .machine.ad
`)},
		Submit: "executable = job.sh\noutput = out\nhold = True",
		Steps: []Step{
			Quietly(EP("sh", "-c", file+`cat >"$f" <<'END'
AssignedGPUs = "GPU-01234567,GPU-89abcdef"
MachineResources = "Cpus Memory Disk Swap GPUs"
GPUs = 2
GPUs_GPU_01234567 = [ Id = "GPU-01234567"; DeviceUuid = "01234567-0000-0000-0000-000000000000" ]
GPUs_GPU_89abcdef = [ Id = "GPU-89abcdef"; DeviceUuid = "89abcdef-0000-0000-0000-000000000000" ]
AvailableGPUs = { GPUs_GPU_01234567, GPUs_GPU_89abcdef }
STARTD_ATTRS = $(STARTD_ATTRS) AssignedGPUs MachineResources GPUs GPUs_GPU_01234567 GPUs_GPU_89abcdef AvailableGPUs
END
`+until+`GPU-01234567,GPU-89abcdef ]; do sleep 0.2; done`)),
			Tool("condor_release"), Ends(),
			Quietly(EP("sh", "-c", file+`rm "$f"; `+until+`undefined ]; do sleep 0.2; done`)),
		}}
}
