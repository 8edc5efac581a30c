package conformance

import (
	"strings"

	"podstarter/classads"
	"podstarter/integration/harness"
)

// hooked is a job with hooks. The hooks do what body says until the job has ended.
func hooked(keyword, body, more string) (submit string, file harness.File) {
	return "executable = body.sh\n+HookKeyword = " + classads.QuoteOld(keyword) + "\noutput = out\n" + more, Script("body.sh", body)
}

// withHooks is a case of such a job.
func withHooks(c Case, keyword, body, more string) Case {
	submit, file := hooked(keyword, body, more)
	c.Submit, c.Files = submit, append(c.Files, file)
	return c
}

// withScripts is a case of a job with a PreCmd or PostCmd.
func withScripts(c Case, body, more string, scripts ...harness.File) Case {
	c.Submit = "executable = body.sh\n+WantScripts = true\noutput = out\nerror = err\n" + more
	c.Files = append(append(c.Files, Script("body.sh", body)), scripts...)
	return c
}

var hooksCases = []Case{
	withHooks(Case{Name: "hooks-all", Shows: "what each hook gets, where it runs, and the order of all hooks", Fleeting: byTheClock},
		"tell", "until grep -qs JobState hook.update; do sleep 0.1; done; exit 3", "transfer_output_files = hook.before, hook.prepare, hook.update, hook.exit"),
	withHooks(Case{Name: "hooks-change", Shows: "the hook before the transfer changes the files to transfer, the one after it the program to run",
		Files: []harness.File{{Name: "first", Content: []byte("1\n")}, {Name: "second", Content: []byte("2\n")}}},
		"change", `echo "$*"; echo "FROM_HOOK=$FROM_HOOK"; ls first second; exit 5`, "arguments = from the job\ntransfer_input_files = first"),
	withHooks(Case{Name: "hooks-hold", Shows: "a hook that puts the job on hold", Steps: []Step{Ends()}},
		"hold", "exit 0", ""),
	withHooks(Case{Name: "hooks-fail", Shows: "a hook before the transfer that fails without a message", Steps: []Step{Ends()}},
		"fail", "exit 0", ""),
	withHooks(Case{Name: "hooks-requeue", Shows: "a hook that sends the job elsewhere, at its first try"},
		"elsewhere", "exit 0", ""),
	withHooks(Case{Name: "hooks-warn", Shows: "hooks that succeed with a message"},
		"warn", "exit 0", ""),
	withHooks(Case{Name: "hooks-unknown", Shows: "a keyword that the site does not know"},
		"nobodys", "exit 4", ""),
	withHooks(Case{Name: "hooks-evicted", Shows: "the exit hook of a vacated job: it gets the reason, and its files are kept with the output",
		Steps: []Step{Runs("hooked"), Tool("condor_vacate_job"), Executes(2)}},
		"reason", "if [ -f reason ]; then cat reason; exit 2; fi; printf hooked >/proc/$$/comm; while :; do sleep 0.2; done",
		"job_max_vacate_time = 30\nwhen_to_transfer_output = ON_EXIT_OR_EVICT"),

	withScripts(Case{Name: "scripts", Shows: "PreCmd and PostCmd: where they run, what they get, what they leave"},
		"cat pre.out; exit 6", `+PreCmd = "tell.sh"
+PreArguments = "pre 'two words'"
+PreEnvironment = "MINE=before"
+PostCmd = "tell.sh"
+PostArgs = "post"
+PostEnv = "MINE=after"
transfer_input_files = tell.sh
transfer_output_files = pre.out, post.out`, Script("tell.sh", `exec >$1.out
echo "$# $*; MINE=$MINE; of the job: $JOBS"
echo "MAINJOB: $_CONDOR_MAINJOB_EXIT_CODE PRE: $_CONDOR_PRE_EXIT_CODE"
[ "$(pwd)" = "$_CONDOR_SCRATCH_DIR" ] && echo in the sandbox
nice
`)),
	withScripts(Case{Name: "scripts-pre-fails", Shows: "a PreCmd that does not exit as the job requires", Steps: []Step{Ends()}},
		"echo never", "+PreCmd = \"pre.sh\"\n+SuccessPreExitCode = 0\ntransfer_input_files = pre.sh", Script("pre.sh", "exit 9\n")),
	withScripts(Case{Name: "scripts-pre-ignored", Shows: "a PreCmd that fails, in a job that requires no exit code"},
		"echo after", "+PreCmd = \"pre.sh\"\ntransfer_input_files = pre.sh", Script("pre.sh", "exit 9\n")),
	withScripts(Case{Name: "scripts-post-fails", Shows: "a PostCmd that does not exit as the job requires", Steps: []Step{Ends()}},
		"echo hello", "+PostCmd = \"post.sh\"\n+SuccessPostExitCode = 0\ntransfer_input_files = post.sh", Script("post.sh", "kill -9 $$\n")),
	withScripts(Case{Name: "scripts-missing", Shows: "a missing PreCmd", Steps: []Step{Ends()}},
		"echo never", "+PreCmd = \"nowhere.sh\""),
	{Name: "scripts-refused", Versions: []string{"25.14+*"}, Shows: "PreCmd and PostCmd where the site does not allow them",
		Submit: "arguments = out=hello\noutput = out\n+PreCmd = \"/bin/false\"\n+SuccessPreExitCode = 0\n+PostCmd = \"/bin/false\"\n+SuccessPostExitCode = 0"},

	{Name: "wrapper", Shows: "USER_JOB_WRAPPER", Alone: true,
		Files:  []harness.File{Script("body.sh", `echo "body: $*"; echo "$WRAPPED"; echo "${_CONDOR_WRAPPER_ERROR_FILE##*/}"; exit 7`)},
		Submit: "executable = body.sh\narguments = \"a 'b c'\"\noutput = out\nerror = err\nhold = true",
		Steps:  wrapped(Ends())},
}

// wrapped has a job that was submitted on hold run under a USER_JOB_WRAPPER.
func wrapped(steps ...Step) []Step {
	return withKnobs("USER_JOB_WRAPPER = "+programs+"/wrapper", steps...)
}

// tell leaves out what is of the clock, secret, of the pilot's manifest, or compared elsewhere. It is a hook that writes down what it is told, until it is told of a job that
// runs, and then does more. Exit
// hooks are slower than they may be: a stock starter whose exit hook ends begins to
// send the output and does not wait for that. The hook's shell keeps its standard
// output open: a stock starter to which a hook closes it before it has read all of
// its input calls the handler of that pipe for ever, and may never write the rest.
func tell(hook, more string) harness.File {
	return Script("hooks/tell-"+hook, `if grep -qs JobState hook.`+hook+`; then exit; fi
{
echo "arguments: $*"
[ "$(id -u)" = 0 ] && echo root
[ "$(pwd)" = "$_CONDOR_SCRATCH_DIR" ] && echo in the sandbox
echo "job: ${_CONDOR_MAINJOB_EXIT_CODE:-has not ended}, pids: $(echo $_CONDOR_JOB_PIDS | wc -w)"
env | sed -n 's/^\([A-Za-z_]*CONDOR[A-Za-z_]*\|TMPDIR\|HOME\|PATH\|BATCH_SYSTEM\|MINE\)=.*/variable \1/p' | grep -v -e ANCESTOR -e INHERIT -e _PRIVATE_ -e _CHIRP_ -e CONDOR_CONFIG | sort
sed 's/ = .*//; s/^/attribute /' | grep -v -e LastRejMatch -e FirstJobMatchDate -e CpusUsage -e CgroupEnforced | sort
} >hook.`+hook+`.new
mv hook.`+hook+`.new hook.`+hook+`
`+more)
}

// hooksSetup has the hooks by keyword, and lets jobs have a PreCmd that want it.
var hooksSetup = Setup{
	Execute: hookKnobs(`STARTER_ALLOW_JOB_PRE_AND_POST_CMD = TARGET.WantScripts =?= true
TELL_HOOK_PREPARE_JOB_BEFORE_TRANSFER = hooks/tell-before
TELL_HOOK_PREPARE_JOB = hooks/tell-prepare
TELL_HOOK_PREPARE_JOB_ARGS = one 'two words'
TELL_HOOK_UPDATE_JOB_INFO = hooks/tell-update
TELL_HOOK_JOB_EXIT = hooks/tell-exit
TELL_HOOK_JOB_EXIT_TIMEOUT = 8
CHANGE_HOOK_PREPARE_JOB_BEFORE_TRANSFER = hooks/input
CHANGE_HOOK_PREPARE_JOB = hooks/arguments
HOLD_HOOK_PREPARE_JOB = hooks/hold
FAIL_HOOK_PREPARE_JOB_BEFORE_TRANSFER = hooks/fail
ELSEWHERE_HOOK_PREPARE_JOB = hooks/elsewhere
WARN_HOOK_PREPARE_JOB_BEFORE_TRANSFER = hooks/warn
WARN_HOOK_PREPARE_JOB = hooks/warn
REASON_HOOK_JOB_EXIT = hooks/reason
REASON_HOOK_JOB_EXIT_TIMEOUT = 6
`),
	Programs: []harness.File{
		tell("before", ""), tell("prepare", ""), tell("update", ""), tell("exit", "sleep 60"),
		Script("hooks/input", `echo 'TransferInput = "first,second"'`),
		Script("hooks/arguments", `echo 'Arguments = "from '"''the hook''"'"'; echo 'Environment = "FROM_HOOK=yes"'; echo complaint >&2`),
		Script("hooks/hold", `echo 'HookStatusMessage = "not today"'; echo 'HookStatusCode = 190'`),
		Script("hooks/fail", `echo 'Arguments = "never"'; exit 3`),
		Script("hooks/elsewhere", `grep -q '^NumShadowStarts = 1$' || exit 0; echo 'HookStatusMessage = "not here"'; echo 'HookStatusCode = 390'`),
		Script("hooks/warn", `echo 'HookStatusMessage = "so far so good"'`),
		Script("hooks/reason", `echo "$1" >reason; sleep 60`),
		Script("wrapper", `if [ "$2" = refuse ]; then printf 'no such luck\nat all\n' >"$_CONDOR_WRAPPER_ERROR_FILE"; exit 1; fi
echo "wrapper: ${0##*/}, $#: ${1##*/} $2 $3"
WRAPPED=yes; export WRAPPED
exec "$@"
`),
	},
}

// hookKnobs puts the directory of programs before the names of the hooks.
func hookKnobs(text string) string {
	return strings.ReplaceAll(text, " = hooks/", " = "+programs+"/hooks/")
}
