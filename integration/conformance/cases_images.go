package conformance

import (
	"context"
	"fmt"
	"slices"
	"time"

	"podstarter/integration/harness"
)

// Images of the pool, and names for which there is none, in submit descriptions.
const (
	busybox = "$(IMAGE_busybox)"
	debian  = "$(IMAGE_debian)"
	foreign = "$(IMAGE_foreign)"   // for another architecture
	empty   = "$(IMAGE_empty)"     // without a file
	bare    = "$(IMAGE_probe)"     // the probe alone
	probing = "$(IMAGE_entry)"     // the same, as entry point
	line    = "$(IMAGE_entryline)" // with an entry point that is a line for a shell
	hostile = "$(IMAGE_hostile)"   // with an environment, a user and a working directory of its own
)

// inDocker makes a case one of a job in the docker universe, beside Docker.
func inDocker(image string, c Case) Case {
	return beside(harness.StockDocker, "docker-", "universe = docker\ndocker_image = "+image+"\n", c)
}

// inApptainer makes a case one of a job in the container universe, beside Apptainer.
func inApptainer(image string, c Case) Case {
	return beside(harness.StockApptainer, "apptainer-", "universe = container\ncontainer_image = docker://"+image+"\n", c)
}

func beside(side harness.Side, prefix, submit string, c Case) Case {
	c.Name, c.Reference = prefix+c.Name, side
	c.Submit = submit + c.Submit
	c.Versions = []string{"25.14+*"} // the references have no other version
	c.Fleeting = slices.Concat(c.Fleeting, byChance("what has been measured by the end of a short job, and how many processes a runtime adds",
		"numpids", "010   Number of processes*", "006*", "stdoutmtime", "memoryusage", "imagesize*", "residentsetsize*", "networkin*", "networkout*"))
	return c
}

// everywhereCases are the cases of any image.
func everywhereCases(in func(image string, c Case) Case) []Case {
	var all []Case
	for _, c := range slices.Concat(imageCommandCases, imageEnvironmentCases, imageSightCases, imageEndCases, imageOrderCases, imageFileCases, imageVisitCases) {
		all = append(all, in(busybox, c))
	}
	return append(all,
		in("$(REGISTRY)/podstarter/busybox", Case{Name: "latest", Shows: "an image without a tag", Submit: "arguments = out=ran\noutput = out"}),
		in(debian, Case{Name: "debian", Shows: "a script in an image with a shell of its own", Patience: 2 * Patience,
			Submit: "executable = job.sh\noutput = out", Files: []harness.File{{Name: "job.sh", Mode: 0o755, Content: []byte("#!/bin/bash\necho ${BASH_VERSION%%.*} $0 \"$#\"; cat /image-name\n")}}}),
		in("127.0.0.1:1/some/image:1", orderedAway(Case{Name: "no-registry", Shows: "a registry that is not there"}).onRequest()),
		in("$(REGISTRY)/broken/image:1", orderedAway(Case{Name: "broken", Shows: "a registry that answers 500"}).onRequest()))
}

// badImageCases are about images that cannot be had.
func badImageCases(in func(image string, c Case) Case) []Case {
	return []Case{
		in("$(REGISTRY)/podstarter/no-such-image", Case{Name: "no-image", Shows: "an image that the registry does not have"}),
		in("$(REGISTRY)/podstarter/busybox:no-such-tag", Case{Name: "no-tag", Shows: "a tag that the registry does not have"}),
		in("$(REGISTRY)/unauthorized/image:1", Case{Name: "unauthorized", Shows: "an image for which the registry wants a password"}),
		in("$(REGISTRY)/forbidden/image:1", Case{Name: "forbidden", Shows: "an image that the registry keeps to itself"}),
		in(foreign, Case{Name: "architecture", Shows: "an image for another architecture", Submit: "arguments = out=ran\noutput = out"}),
		in("Not:An:Image", Case{Name: "bad-name", Shows: "a name that can be of no image"}),
	}
}

// Images that only those can pull who have a password.
const (
	privateBusybox = "$(PRIVATE_REGISTRY)/podstarter/busybox"
	privateEntry   = "$(PRIVATE_REGISTRY)/podstarter/entry"
	privateHostile = "$(PRIVATE_REGISTRY)/podstarter/hostile"
	privateDebian  = "$(PRIVATE_REGISTRY)/podstarter/debian"
	privateLayered = "$(PRIVATE_REGISTRY)/podstarter/layered" // of several layers
)

// credentialCases are about docker_send_credentials, which Docker alone has.
func credentialCases() []Case {
	const send = "docker_send_credentials = True\n"
	return []Case{
		inDocker(privateBusybox, shell("credentials", "an image that takes the user's credentials", "cat /image-name; echo $PATH; env | grep -i -e secret -e auth -e docker; true", send)),
		inDocker(privateLayered, shell("credentials-layers", "what a layer replaces and removes", "cd /; for f in $(find data emptied removed 2>/dev/null | sort); do echo $f $(cat $f 2>/dev/null); done; ls -ld data/link | cut -c1; echo $FROM_IMAGE", send)),
		inDocker(privateEntry, Case{Name: "credentials-entry", Shows: "an entry point of such an image", Submit: send + "executable = out=ran\ntransfer_executable = False\noutput = out"}),
		inDocker(privateHostile, shell("credentials-environment", "variables of such an image", `echo "$PATH|$GOTRACEBACK|$GODEBUG|$LD_PRELOAD|$FROM_JOB|${HOME##*/}"`, send+"environment = \"FROM_JOB=1\"\n")),
		inDocker(busybox, Case{Name: "credentials-public", Shows: "an image for everybody, and credentials for another registry", Submit: send + "arguments = out=ran\noutput = out"}),
		inDocker(privateDebian, Case{Name: "no-credentials", Shows: "an image that takes credentials, and a user who sends none"}),
		inDocker("$(PRIVATE_REGISTRY)/podstarter/no-such-image", Case{Name: "credentials-no-image", Shows: "an image that does not exist, for those who may ask", Submit: send}),
	}
}

// orderedAway ends a job that cannot begin, and that need not be on hold for that: it would be tried again and again.
func orderedAway(c Case) Case {
	c.Steps = []Step{anyOf(harness.EventEvicted, harness.EventTerminated), removeUnlessDone, anyOf(harness.EventAborted, harness.EventTerminated)}
	c.Patience = 2 * Patience // registries are asked more than once
	return c
}

// removeUnlessDone is condor_rm of a job that has not ended.
var removeUnlessDone = Do("condor_rm, unless the job is done", func(ctx context.Context, r *Run) error {
	events, err := r.Job().Events()
	if err != nil || slices.ContainsFunc(events, func(e harness.Event) bool { return e.Number == harness.EventTerminated }) {
		return err
	}
	return r.Job().Tool(ctx, "condor_rm")
})

// anyOf waits for one of several events.
func anyOf(numbers ...int) Step {
	words := fmt.Sprintf("one of the events %v", numbers)
	return Wait(words, func(ctx context.Context, r *Run) error {
		_, err := r.Job().WaitEvents(ctx, words, func(events []harness.Event) bool {
			return slices.ContainsFunc(events, func(e harness.Event) bool { return slices.Contains(numbers, e.Number) })
		})
		return err
	})
}

// of gives the cluster so many jobs.
func (c Case) of(jobs int) Case {
	c.Count = jobs
	return c
}

// holding adds files to the submit directory, each of which has its own name in it.
func (c Case) holding(names ...string) Case {
	for _, name := range names {
		c.Files = append(c.Files, harness.File{Name: name, Content: []byte(name + "\n")})
	}
	return c
}

// interfaces prints "lo" if the job sees the loopback device, and "others" if it sees more.
const interfaces = `sed 's/:.*//' /proc/net/dev | sed 1,2d | tr -d ' ' | sed -e '/^lo$/!s/.*/others/' | sort -u`

// shell is a case of a script, whose output comes back.
func shell(name, shows, script, submit string, steps ...Step) Case {
	return Case{Name: name, Shows: shows, Submit: "executable = job.sh\noutput = out\nerror = err\n" + submit, Files: []harness.File{Script("job.sh", script)}, Steps: steps}
}

// inImage is a case of a program of the image.
func inImage(name, shows, program, submit string) Case {
	return Case{Name: name, Shows: shows, Submit: "executable = " + program + "\ntransfer_executable = False\noutput = out\nerror = err\n" + submit}
}

// imageCommandCases are about which program runs, and its arguments.
var imageCommandCases = []Case{
	shell("script", "a transferred script", "echo \"$0\" \"$#\"; cat /image-name\n", "arguments = a b"),
	inImage("program", "a program of the image", "/bin/sh", `arguments = "-c 'echo $0 $#; exit 3' name one"`),
	inImage("program-relative", "a program of the image without its directory", "sh", `arguments = "-c 'echo ran'"`),
	inImage("no-program", "a program that the image does not have", "/bin/no-such-program", ""),
	inImage("no-execute", "a file of the image that is no program", "/image-name", ""),
	{Name: "no-interpreter", Shows: "a script whose interpreter the image does not have", Submit: "executable = job.sh",
		Files: []harness.File{{Name: "job.sh", Mode: 0o755, Content: []byte("#!/no/such/interpreter\n")}}},
	{Name: "arguments", Shows: "arguments with spaces, quotes, an empty one", Submit: `arguments = "facts -- one 'two words' '' 'it''s' ""double"" $HOME *"
output = out`, Facts: true},
	{Name: "arguments-old", Shows: "arguments in the old syntax", Submit: "arguments = out=$HOME out=* out=\\\\ out=.\noutput = out"},
	{Name: "stdin", Shows: "standard input", Submit: "arguments = copy\ninput = given\noutput = out", Files: []harness.File{{Name: "given", Content: []byte("one\ntwo\n")}}},
	shell("stdin-none", "no standard input", "cat; echo \"code $?\"\n", ""),
	shell("streamed", "streamed output and error", "echo one; echo two >&2; echo three\n", "stream_output = True\nstream_error = True"),
	shell("same-stream", "output and error in one file", "echo one; sleep 0.5; echo two >&2\n", "error = out"),
	shell("two-jobs", "two jobs of one cluster", "echo \"job $1\"\n", "arguments = $(Process)\noutput = out.$(Process)\nerror = err.$(Process)").of(2),
}

// imageEnvironmentCases are about variables, the user and limits.
var imageEnvironmentCases = []Case{
	{Name: "facts", Shows: "what a job sees of itself", Submit: "arguments = facts\noutput = out", Facts: true},
	{Name: "environment", Shows: "variables of the job, some of which the image or the starter has too",
		Submit: `environment = "PLAIN=1 SPACES='a b  c' EMPTY= PATH=/mine:/bin HOME=/mine TMPDIR=/mine HOSTNAME=mine LD_LIBRARY_PATH=/mine _CONDOR_SLOT=mine"
getenv = SHELL, CONFORMANCE_*
arguments = facts
output = out`, Facts: true},
	whoAmI(shell("user", "the job's user and groups, and what it may write", `id -u | sed 's/1000[1-8]/<user>/'; id -g | sed 's/1000[1-8]/<user>/'; umask
for d in / /bin /etc /usr /home /tmp /var/tmp /dev /dev/shm /run "$PWD" "$HOME"; do [ -w "$d" ] && echo "may write $d" || echo "may not write $d"; done
`, "")),
}

// whoAmI is for a case whose output has the sandbox's path, with a number that may be long or short.
func whoAmI(c Case) Case {
	c.Fleeting = byChance("the output has the path of the sandbox, whose number may have more or fewer digits", "bytessent", "005   * Bytes Sent By Job", "transferoutputstats")
	return c
}

// othersSeen is for a case whose output has what else runs.
func othersSeen(c Case) Case {
	c.Fleeting = byChance("which other processes there are", "bytessent", "005   * Bytes Sent By Job", "transferoutputstats")
	return c
}

// imageSightCases are about what a job sees of the file system and of other processes.
var imageSightCases = []Case{
	shell("etc", "files that runtimes put into /etc", "for f in passwd group hosts hostname resolv.conf nsswitch.conf; do [ -e /etc/$f ] && echo \"$f is there\" || echo \"no $f\"; done; grep -c localhost /etc/hosts\n", ""),
	othersSeen(shell("proc", "processes of others", `for p in /proc/[0-9]*; do tr '\0' ' ' 2>/dev/null <$p/cmdline | cut -c1-40; echo; done 2>/dev/null | sed '/^$/d; s/ *$//' | grep -v -e '^sed' -e '^tr' -e '^cut' -e '^grep' -e '^sort' | sort -u
[ -w /proc/sys/kernel/hostname ] && echo "may write /proc/sys"; [ -w /sys ] && echo "may write /sys"; cat /proc/1/comm
`, "")),
	shell("dev", "devices", "ls /dev | grep -v -e '^vda' -e '^loop' -e '^tty[0-9S]' -e '^ram' -e '^vcs' -e '^nbd'\n", ""),
	shell("tmp", "/tmp, /var/tmp and /dev/shm", `for d in /tmp /var/tmp /dev/shm; do ls -ld $d | cut -c1-10; echo x >$d/x && echo "wrote $d/x"; done; ls
`, "transfer_output_files = \"\""),
	shell("network", "interfaces and name of the machine", interfaces+"; hostname | grep -c -e alice -e bob -e carol; [ $(ip route | wc -l) = 0 ] || echo routes\n", ""),
	shell("sandbox", "the sandbox", "ls -A | sed 's/^\\(job\\.sh\\|_condor_std.*\\)$/\\1/' | sort; [ \"$PWD\" = \"$_CONDOR_SCRATCH_DIR\" ] && echo here; ls -A .. | sort\n", "transfer_output_files = \"\""),
	shell("root", "the image's root directory", "ls /; touch /made 2>/dev/null && echo made\n", ""),
}

// imageEndCases are about how a job ends.
var imageEndCases = []Case{
	{Name: "exit", Shows: "an exit code", Submit: "arguments = exit=7"},
	{Name: "exit-high", Shows: "an exit code above 128", Submit: "arguments = exit=137"},
	{Name: "signal-kill", Shows: "a job that SIGKILL ends", Submit: "arguments = signal=9"},
	{Name: "signal-segv", Shows: "a job that dies of a fault", Submit: "executable = job.sh", Files: []harness.File{Script("job.sh", "kill -SEGV $$\n")}},
	shell("background", "a job that leaves processes behind", "sleep 1000 & setsid sleep 1000 & echo ends\n", ""),
	{Name: "on-exit-hold", Shows: "on_exit_hold", Submit: "arguments = exit=3\non_exit_hold = ExitCode == 3", Steps: []Step{Event(harness.EventHeld, 1)}},
	{Name: "too-long", Shows: "allowed_execute_duration", Submit: "arguments = forever\nallowed_execute_duration = 20", Steps: []Step{Event(harness.EventHeld, 1).About(20 * time.Second)}, Fleeting: byChance("they grow each time the shadow finds the policy true before the job has ended", "numholds*", "numvacates*")},
}

// imageOrderCases are about orders to a running job.
var imageOrderCases = []Case{
	twice(steered("held", "condor_hold of a running job that saves what it has done, and condor_release",
		later+traps("TERM")+ready+untilCaught, onEvict,
		Ready(), Tool("condor_hold"), Event(harness.EventHeld, 1), Gone(), Tool("condor_release"), Event(harness.EventReleased, 1))),
	steered("removed", "condor_rm", ready+rest, "", Ready(), Tool("condor_rm"), Gone()),
	twice(steered("vacated", "condor_vacate_job: the job hears of it", later+traps("TERM")+ready+untilCaught, onEvict,
		Ready(), Tool("condor_vacate_job"), Executes(2))),
	twice(steered("vacated-fast", "condor_vacate_job -fast", later+"echo made >state\n"+ready+rest, onEvict,
		Ready(), Tool("condor_vacate_job", "-fast", "<job>"), Executes(2))),
	twice(steered("kill-sig", "the signal of kill_sig", later+traps("TERM", "USR1")+ready+untilCaught, onEvict+"kill_sig = SIGUSR1",
		Ready(), Tool("condor_vacate_job"), Executes(2))),
	steered("soft-ignored", "a job that ignores SIGTERM", "trap '' TERM\n"+ready+rest, onEvict+"job_max_vacate_time = 3",
		Ready(), Tool("condor_rm"), Gone()),
	steered("suspended", "condor_suspend and condor_continue", ready+"while [ ! -e go ]; do sleep 0.1; done\necho on\n", "",
		Ready(), Tool("condor_suspend"), Event(harness.EventSuspended, 1), Tool("condor_continue"), Event(harness.EventUnsuspended, 1), EP("touch", "<scratch>/go")),
	steered("checkpoint", "a job that checkpoints itself twice", checkpointing("3"), "error = err\ncheckpoint_exit_code = 85"),
	twice(steered("checkpoint-evicted", "a killed job continues from its checkpoint", checkpointing("9"), "checkpoint_exit_code = 85\ntransfer_checkpoint_files = state",
		Runs("probe-stays"), Tool("condor_vacate_job", "-fast", "<job>"), Executes(2))),
	steered("deferred", "deferral_time", deferredScript, "deferral_time = (QDate + 6)\ndeferral_window = 60"),
}

// imageFileCases are about files, in and out.
var imageFileCases = []Case{
	shell("files", "files and directories, in and out", "cat a d/b; echo made >made; mkdir -p e; echo deep >e/deep\n", "transfer_input_files = a, d\ntransfer_output_files = made, e").holding("a", "d/b"),
	shell("files-new", "all new files come back", "echo made >made; mkdir e; echo deep >e/deep\n", ""),
	shell("files-missing", "an output file that the job does not make", "true\n", "transfer_output_files = missing"),
	shell("files-outside", "an output file that is elsewhere in the container", "echo x >/tmp/x\n", "transfer_output_files = /tmp/x"),
	shell("target-dir", "container_target_dir", "pwd; ls -d /target; ls /target | grep -c job.sh; echo \"$_CONDOR_SCRATCH_DIR\" | sed 's/dir_[0-9]*/dir/'; echo x >made\n", "container_target_dir = /target\ntransfer_output_files = made"),
	chirping("chirp", "chirp", ""),
	shell("token", "an OAuth token", "ls \"$_CONDOR_CREDS\"; cat \"$_CONDOR_CREDS\"/*.use\n", "hold = True\nMY.OAuthServicesNeeded = \"webtoken\"",
		webToken("webtoken", harness.WebToken), Tool("condor_release"), Ends()),
	{Name: "url", Shows: "an input URL", Submit: fromWeb("$(WEB)/urls/one"), Files: []harness.File{listing}},
}

// chirping is a case of a job that asks its starter something.
func chirping(name, shows, submit string) Case {
	return Case{Name: name, Shows: shows, Submit: "arguments = chirp=requests\ntransfer_input_files = requests\noutput = out\nerror = err\n" + wantIO + submit,
		Files: []harness.File{{Name: "requests", Content: []byte("cookie $cookie\nget_job_attr RequestMemory\nwhoami 64\n")}}}
}

// relativeDirectory is a case of a job with a directory that neither Docker nor Apptainer takes.
var relativeDirectory = shell("initial-dir", "an initial directory below the sandbox", "basename \"$PWD\"; ls\n", "transfer_input_files = inner\nremote_initialdir = inner").holding("inner/leaf")

// imageVisitCases are about tools that reach into a job.
var imageVisitCases = []Case{
	{Name: "tail", Shows: "condor_tail", Submit: linger, Files: lingering, Fleeting: byTheClock,
		Steps: []Step{Runs("lingers"), Tool("condor_tail"), EP("touch", "<scratch>/go"), Ends()}},
	{Name: "ssh", Shows: "condor_ssh_to_job: a command, its user and directory", Submit: linger, Files: lingering, Fleeting: byTheClock,
		Steps: []Step{Runs("lingers"), login("<job> 'cat /image-name; basename $PWD; exit 3'"), EP("touch", "<scratch>/go"), Ends()}},
}
