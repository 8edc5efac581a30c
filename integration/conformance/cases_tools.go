package conformance

import (
	"context"
	"slices"
	"strings"

	"podstarter/integration/harness"
)

// lingering is a job that prints something and then waits for a file "go".
var lingering = []harness.File{Script("linger", `echo first line
echo an error >&2
echo some data >data.txt
echo secret >private.txt
ln -s /etc/passwd outside.txt
ln -s data.txt inside.txt
printf 'lingers' >/proc/$$/comm
until [ -e go ]; do sleep 0.2; done
echo last line
`)}

// linger is its submit description. It names its output files, so that files that
// sessions leave in the sandbox do not come back too.
const linger = "executable = linger\noutput = out\nerror = err\ntransfer_output_files = data.txt\n"

var byTheClock = byChance("how many processes stock reports depends on when it looked last", "numpids")

// login runs condor_ssh_to_job with these words after its options. It hides all output
// that shows how long the job took to start, or that stock's users have no home.
func login(words string) Step {
	return inShell("condor_ssh_to_job "+words, "condor_ssh_to_job -auto-retry "+words)
}

func inShell(name, script string) Step {
	return Do(name, func(ctx context.Context, r *Run) error {
		args, _ := r.arguments([]string{script})
		result, err := r.Pool.TryAP(ctx, "sh", "-c", `cd "$0" && said=$(eval "$1" 2>&1)
code=$?
printf '%s\n' "$said" | grep -v -e '^Could not chdir to home' -e '^Waiting for job to start'
exit $code`, r.directory(), args[0])
		r.told(name, result)
		return err
	})
}

// goes lets the job go on.
func goes() Step { return Quietly(login("<job> 'touch go'")) }

// peeks is a case of condor_tail, whose options and files are words.
func peeks(name, shows string, words ...string) Case {
	return Case{
		Name: "tail-" + name, Shows: shows, Submit: linger, Files: lingering, Fleeting: byTheClock,
		Steps: []Step{Runs("lingers"), Tool(append([]string{"condor_tail"}, words...)...), goes(), Ends()},
	}
}

// visits is a case of condor_ssh_to_job.
func visits(name, shows string, steps ...Step) Case {
	return Case{
		Name: "ssh-" + name, Shows: shows, Submit: linger, Files: lingering, Fleeting: byTheClock,
		Steps: append(append([]Step{Runs("lingers")}, steps...), goes(), Ends()),
	}
}

var toolsCases = []Case{
	peeks("stdout", "condor_tail: the standard output so far"),
	peeks("stderr", "condor_tail: only the standard error", "-stderr"),
	peeks("file", "condor_tail: an output file of the job", "-no-stdout", "<job>", "data.txt"),
	peeks("bytes", "condor_tail: the last bytes only", "-maxbytes", "5", "<job>"),
	peeks("forbidden", "condor_tail: a file that is not an output of the job", "-no-stdout", "<job>", "private.txt"),
	func() Case {
		c := peeks("link", "condor_tail: a link to another file of the sandbox", "-no-stdout", "<job>", "inside.txt")
		c.Submit += "transfer_output_files = inside.txt\n"
		return c
	}(),
	func() Case {
		c := peeks("outside", "condor_tail: a link that leads out of the sandbox", "-no-stdout", "<job>", "outside.txt")
		c.Submit += "transfer_output_files = outside.txt\n"
		// No starter sends such a link in the same way.
		c.Steps[len(c.Steps)-2] = Quietly(login("<job> 'rm outside.txt; touch outside.txt go'"))
		return c
	}(),
	{
		Name: "tools-disabled", Shows: "condor_tail and condor_ssh_to_job where an expression over the job forbids them",
		Submit: linger + "+NoTools = true\n", Files: lingering, Fleeting: byTheClock,
		Steps: []Step{
			Runs("lingers"), Tool("condor_tail"), login("<job> true"),
			Tool("condor_rm"), Ends(),
		},
	},
	visits("command", "condor_ssh_to_job: a command, where it runs, and its exit code",
		login(`<job> 'pwd >&2; exit 3'`)),
	visits("killed", "condor_ssh_to_job: a command that dies of a signal",
		inShell("condor_ssh_to_job, killed", `condor_ssh_to_job -auto-retry <job> 'kill -9 $$' 2>/dev/null`)),
	visits("stdin", "condor_ssh_to_job: standard input of a command",
		inShell("condor_ssh_to_job, from a pipe", `printf 'one\ntwo\n' | condor_ssh_to_job -auto-retry <job> 'cat >given; wc -l <given'`)),
	visits("environment", "condor_ssh_to_job: the environment of the job", login(
		`<job> 'echo "$SAYS ¦ $BATCH_SYSTEM ¦ $_CONDOR_SCRATCH_DIR ¦ $_CONDOR_JOB_IWD ¦ $_CONDOR_SLOT ¦ $TMPDIR ¦ $_CONDOR_JOB_AD ¦ $SHELL ¦ ${DISPLAY-none}"; kill -0 $_CONDOR_JOB_PIDS'`)),
	visits("shell", "condor_ssh_to_job: a login without a command",
		inShell("condor_ssh_to_job, a shell on a pipe", `echo 'pwd; echo $0; exit 4' | SHELL=/bin/sh condor_ssh_to_job -auto-retry <job> 2>/dev/null | sed 's/pid(s) .*/pid(s)/'`)),
	visits("terminal", "condor_ssh_to_job: a terminal", inShell("condor_ssh_to_job, a terminal",
		`condor_ssh_to_job -auto-retry -ssh 'ssh -tt' <job> 'test -t 0 && test -t 1 && tty | sed s/[0-9]*$//; echo $TERM' </dev/null 2>/dev/null | tr -d '\r'`)),
	{
		Name: "ssh-outlasts", Shows: "a session that outlives the job's main process: its files come back", Submit: linger + "transfer_output_files = data.txt, late.txt\n", Files: lingering, Fleeting: byTheClock,
		Steps: []Step{Runs("lingers"), login(`<job> 'touch go; while kill -0 $_CONDOR_JOB_PIDS 2>/dev/null; do sleep 0.1; done; echo late >late.txt'`), Ends()},
	},
	{
		Name: "ssh-removed", Shows: "condor_rm while somebody is logged in", Submit: linger, Files: lingering, Fleeting: byTheClock,
		Steps: []Step{
			Runs("lingers"),
			inShell("condor_rm during a session", strings.Join([]string{
				`condor_ssh_to_job -auto-retry <job> 'touch in; sleep 1000' >/dev/null 2>&1 & session=$!`,
				`until condor_ssh_to_job <job> 'test -e in' >/dev/null 2>&1; do sleep 0.3; done`,
				`condor_rm <job> >/dev/null; wait $session; echo exit code $?`,
			}, "\n")),
			Ends(), Gone(),
		},
	},
	{
		Name: "ssh-interactive", Shows: "an interactive job, whose placeholder ends at the first login",
		Submit: "executable = /bin/sleep\ntransfer_executable = false\narguments = 1000\n+InteractiveJob = true\noutput = out\n",
		Fleeting: slices.Concat(byTheClock, byChance("under stock the exit code is that of an sshd: 255 or 0, depending on how it notices the end, "+
			"with what an update in between has said about the placeholder", "exitcode", "exitreason", "exitsignal", "005   (1) Normal termination *")),
		Steps: []Step{Executes(1), login(`<job> 'echo "pids $_CONDOR_JOB_PIDS"'`), Ends()},
	},
	{
		Name: "who-and-logs", Shows: "condor_who of one job, condor_fetchlog by slot, condor_ping of the startd", Submit: linger, Files: lingering, Fleeting: byTheClock,
		Steps: []Step{
			Runs("lingers"), Until("JobStatus == 2"),
			EP("sh", "-c", `condor_who -af JobId ImageSize 2>/dev/null | grep -c '^<job> '`),
			EP("sh", "-c", `condor_fetchlog -startd $(hostname) STARTER.<slot> 2>/dev/null | grep -c 'universe job with ID: <job>$'`),
			goes(), Ends(),
		},
	},
}

// toolsSetup forbids the tools to jobs that ask for it.
var toolsSetup = Setup{Execute: `ENABLE_PEEK_JOB = TARGET.NoTools =!= true
ENABLE_SSH_TO_JOB = TARGET.NoTools =!= true
`}
