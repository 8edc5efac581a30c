package conformance

import (
	"context"
	"fmt"
	"strings"
	"time"

	"podstarter/classads"
	"podstarter/integration/harness"
)

// reportingCases are about the contents of updates, the effect of limits, and what
// follows from both.
var reportingCases = []Case{
	{Name: "running", Shows: "what the queue says of a job while it runs",
		Submit: "arguments = out=hello memory=20 disk=big:6 burn=1.2 ready forever\noutput = out\ntransfer_output_files =",
		Steps: []Step{
			Ready(), Event(harness.EventImageSize, 1),
			// The probe's own memory is a few MB; sizes are rounded up by a quarter.
			Until("ResidentSetSize_RAW >= 20480 && ResidentSetSize_RAW < 49152"), Until("MemoryUsage >= 20 && MemoryUsage < 64"),
			Until("DiskUsage_RAW >= 6144 && DiskUsage_RAW < 32768"), Until("ScratchDirFileCount > 2"), Until("RemoteUserCpu + RemoteSysCpu >= 1"),
			Until("ImageSize_RAW >= 20480"), unlessOlder(Until("isInteger(StdoutMtime)")), Until("isInteger(BlockReadKbytes) && isInteger(RecentBlockReadKbytes)"),
			Tool("condor_rm"),
		}},
	{Name: "busy", Shows: "the startd knows how busy a slot's job is",
		Submit: "arguments = ready burn=10000\noutput = out",
		Steps: []Step{
			Ready(), slotIs("CpusUsage > 0.05 && CpusUsage < 1.6"), slotIs("NumPids >= 1"),
			// From there it goes back to the starter, by .update.ad, and to the
			// queue.
			Until("CpusUsage > 0.05 && CpusUsage < 1.6"), Tool("condor_rm"),
		}},
	{Name: "children", Shows: "CPU time of short-lived children",
		Submit: "executable = many\ntransfer_input_files = probe\noutput = out",
		Files:  []harness.File{Script("many", "i=0; while [ $i -lt 40 ]; do ./probe burn=0.06 || exit 1; i=$((i+1)); done\n")},
		Steps:  []Step{Ends(), inHistory("(RemoteUserCpu + RemoteSysCpu) >= 2 && (RemoteUserCpu + RemoteSysCpu) < 30")}},
	{Name: "core", Shows: "a core file, where core_size allows it",
		Submit: "executable = crash\ncoresize = -1\noutput = out", Files: []harness.File{crash},
		Steps: []Step{Ends(), Shell(`ls -l core.<cluster>.0 | cut -c1-10; rm -f core.<cluster>.0; grep -c 'Corefile in: .*/core.<cluster>.0' job.log`)},
		Fleeting: byChance("they name the core file, and with it the job, or give its size",
			"005   (1) Corefile in: *", "jobcorefilename", "spooledoutputfiles", "bytessent", "transferoutputstats", "*Bytes Sent By Job")},
	{Name: "core-unwanted", Shows: "no core file without core_size",
		Submit: "executable = crash\noutput = out", Files: []harness.File{crash}},
	{Name: "limits", Shows: "limits by submit file and by knobs, niceness",
		Submit: "arguments = facts\noutput = out\ncoresize = 1000000\nstack_size = 4194304\n+ConformanceNice = 7\n+ConformanceAddressSpace = 3000", Facts: true},
	{Name: "threads", Shows: "variables with the number of CPUs, and the site's",
		Submit: "arguments = facts\noutput = out\nenvironment = \"OMP_NUM_THREADS=7 MKL_NUM_THREADS= CONFORMANCE_USER=mine CONFORMANCE_SITE_B=mine\"", Facts: true},
	{Name: "execute-attributes", Shows: "attributes of the slot in the execute event",
		Submit: "arguments = out=hello\noutput = out\nulog_execute_attrs = Memory, Arch, HasFileTransfer, NoSuchThing"},
	{Name: "starter-log", Shows: "the job's own copy of the starter's log",
		Submit:   "arguments = out=hello\noutput = out\nstarter_log = sl\nstarter_debug = D_FULLDEBUG",
		Fleeting: byChance("the log's size changes from run to run", "bytessent", "transferoutputstats", "*Bytes Sent By Job"),
		Steps:    []Step{Ends(), Shell(`for say in 'About to exec' 'Create_Process succeeded' 'Process exited'; do grep -c "$say" sl; done; ls -l sl | cut -c1-10; rm sl`)}},
	{Name: "starter-debug", Shows: "the same, but not sent back",
		Submit: "arguments = out=hello\noutput = out\n+JobStarterDebug = \"D_FULLDEBUG\""},
	{Name: "job-ads", Shows: "the ads of job and slot in the sandbox",
		Submit: "executable = ads\noutput = out\nMY.parent = 1", Fleeting: byChance("the ads' sizes change from run to run", "bytessent", "transferoutputstats", "*Bytes Sent By Job"),
		Files: []harness.File{Script("ads", `stat -c '%n %A' .job.ad .machine.ad
# The payload of a pod is in no passwd file, hence without a home.
sed -n 's/^\([A-Za-z_0-9]*\) = .*/\1/p' .job.ad | grep -v -e '^OSHomeDir$' -e '^LastRej' | LC_ALL=C sort
grep -E '^(Arch|OpSys|Cpus|Memory|MachineResources|SlotID|SlotTypeID|State|UidDomain|CondorVersion|Out|Err|Iwd|In|OriginalOut|TransferErr|Cmd|OrigCmd|OrigIwd|JobStatus) = ' .job.ad .machine.ad | sed 's/^\(.machine.ad:SlotID = \).*/\1<n>/' | LC_ALL=C sort
grep -i parent .job.ad
grep -c -i -e '^ClaimId ' -e '^Capability ' -e '^TransferKey ' -e '^_condor_priv' .job.ad .machine.ad
`)}},
	{Name: "encrypted", Shows: "files that are encrypted, or not, by name",
		Submit: "arguments = cat=in1 file=out1:o file=out2:p\noutput = out\ntransfer_input_files = in1, in2\nencrypt_input_files = in*\ndont_encrypt_input_files = in2\n" +
			"transfer_output_files = out1, out2\nencrypt_output_files = out1\ndont_encrypt_output_files = *",
		Files: []harness.File{{Name: "in1", Content: []byte("secret\n")}, {Name: "in2", Content: []byte("not\n")}}},
	{Name: "input-remaps", Shows: "input files under other names in the sandbox",
		Submit: "arguments = cat=there/second cat=in1\noutput = out\ntransfer_input_files = in1, in2\n+TransferInputRemaps = \"in2=there/second\"",
		Files:  []harness.File{{Name: "in1", Content: []byte("first\n")}, {Name: "in2", Content: []byte("second\n")}}},
	{Name: "over-memory", Shows: "a job that the startd's policy holds for its memory",
		Submit: "arguments = memory=90 ready forever\noutput = out\n+ConformancePolicy = true",
		Steps:  []Step{Executes(1), Event(harness.EventHeld, 1)}},
	{Name: "over-disk", Shows: "a job that the startd's policy holds for its disk",
		Submit: "arguments = disk=big:40 ready forever\noutput = out\n+ConformancePolicy = true",
		Steps:  []Step{Executes(1), Event(harness.EventHeld, 1)}},
	{Name: "waited-for", Shows: "condor_wait",
		Submit: "arguments = ready sleep=1s exit=3\noutput = out",
		Steps:  []Step{Executes(1), Tool("condor_wait", "-wait", "90", "<directory>/job.log")}},
	{Name: "long-lived", Shows: "windows of statistics over several updates",
		Submit: "arguments = ready sleep=7s exit=0\noutput = out", Steps: []Step{Ready(), Ends().About(5 * time.Second)}},
	{Name: "evicted-usage", Shows: "usage in the events of a vacated job",
		Submit: "arguments = resume=again:0 file=again:x burn=1.5 ready forever\nwhen_to_transfer_output = ON_EXIT_OR_EVICT\noutput = out",
		Steps:  []Step{Ready(), Event(harness.EventImageSize, 1), Tool("condor_vacate_job"), Executes(2)}},
}

// inHistory notes the value of an expression over the job's history ad, once the job
// has left the queue.
func inHistory(expression string) Step {
	return Shell(`until condor_history <job> -limit 1 -af ClusterId | grep -q .; do sleep 0.3; done; condor_history <job> -limit 1 -af '` + expression + `'`)
}

// unlessOlder leaves out a step where access point or startd are of 23.9: that starter
// does not report what it waits for, and that shadow does not keep it.
func unlessOlder(s Step) Step {
	do := s.do
	s.do = func(ctx context.Context, r *Run) error {
		if v := r.Pool.Versions; strings.HasPrefix(v.EP, "23.") || strings.HasPrefix(v.AP, "23.") {
			return nil
		}
		return do(ctx, r)
	}
	return s
}

// slotIs waits until an expression over the ad of the job's slot, as the startd
// itself has it, is true.
func slotIs(expression string) Step {
	return Wait("until the slot is "+expression, func(ctx context.Context, r *Run) error {
		const turn = time.Second
		for {
			host, err := r.Pool.AP(ctx, "condor_q", r.Job().ID(), "-af", "RemoteHost")
			if err != nil {
				return err
			}
			host = strings.TrimSpace(host)
			_, machine, _ := strings.Cut(host, "@")
			out, err := r.Pool.EP(ctx, r.Side, "condor_status", "-direct", machine, "-constraint", "Name == "+classads.Quote(host), "-af", expression)
			if err == nil && strings.TrimSpace(out) == "true" {
				return nil
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("waiting until the slot is %s: %w; last answer %q, %v", expression, context.Cause(ctx), out, err)
			case <-time.After(turn):
			}
		}
	})
}

var crash = Script("crash", "kill -SEGV $$\n"+strings.Repeat("# Long enough for its size not to be mistaken for the number of a job.\n", 100))

// reportingSetup is about jobs that name themselves.
var reportingSetup = Setup{
	Execute: `STARTER_UPDATE_INTERVAL = 4
JOB_RENICE_INCREMENT = ifThenElse(ConformanceNice =!= undefined, ConformanceNice, 0)
STARTER_RLIMIT_AS = ifThenElse(TARGET.ConformanceAddressSpace =!= undefined, TARGET.ConformanceAddressSpace, 0)
STARTER_JOB_ENVIRONMENT = "CONFORMANCE_SITE='the site''s' CONFORMANCE_SITE_B=the-site"
CONFORMANCE_MEMORY = (ConformancePolicy =?= true && MemoryUsage =!= undefined && MemoryUsage > RequestMemory)
CONFORMANCE_DISK = (ConformancePolicy =?= true && DiskUsage =!= undefined && DiskUsage > RequestDisk * 2)
use POLICY : WANT_HOLD_IF(CONFORMANCE_MEMORY, 102, memory usage exceeded request_memory)
use POLICY : WANT_HOLD_IF(CONFORMANCE_DISK, 104, disk usage exceeded request_disk)
POLLING_INTERVAL = 2
UPDATE_INTERVAL = 5
`,
	Submit: "SHADOW_QUEUE_UPDATE_INTERVAL = 4\n",
}
