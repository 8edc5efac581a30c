package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"podstarter/integration/harness"
)

// sited is a case of a job that runs while its execution point has these knobs, which take effect for every job: no other
// runs meanwhile.
func sited(c Case, knobs string, steps ...Step) Case {
	c.Alone = true
	c.Submit += "\nhold = true"
	c.Steps = withKnobs(knobs, append(steps, Ends())...)
	return c
}

// withKnobs releases a job that was submitted on hold when its execution point has the knobs, and takes them away after
// the steps, or after one of them that fails. Starters read the configuration anew for each job.
func withKnobs(knobs string, steps ...Step) []Step {
	const file = `f=$(condor_config_val LOCAL_CONFIG_DIR | sed 's/.*[, ]//')/99-knobs.conf; `
	remove := Quietly(EP("sh", "-c", file+`rm -f "$f"`))
	steps = slices.Concat([]Step{
		Quietly(EP("sh", "-c", file+`printf '%s\n' "$0" >"$f"`, knobs)),
		Quietly(Tool("condor_release")),
	}, steps)
	for i, s := range steps {
		steps[i].do = func(ctx context.Context, r *Run) error {
			err := s.do(ctx, r)
			if err == nil {
				return nil
			}
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
			defer cancel()
			return errors.Join(err, remove.do(ctx, r))
		}
	}
	return append(steps, remove)
}

// says is whether the log of the job's slot has a line with the text.
func says(text, want string) Step {
	return prints(want, EP("sh", "-c", `grep -q "$0" "$(condor_config_val LOG)/StarterLog.<slot>" && echo said || echo not said`, text))
}

// prints fails the case unless the tool of the step prints this, under both starters.
func prints(want string, s Step) Step {
	do := s.do
	s.do = func(ctx context.Context, r *Run) error {
		if err := do(ctx, r); err != nil {
			return err
		}
		if got := r.found.Tools[s.Words]; got != strings.TrimSpace("exit code 0\n"+want) {
			return fmt.Errorf("it printed %q, and must print %q", got, want)
		}
		return nil
	}
	return s
}

// loggedPlugin is a plugin that a job brings, with words on standard output and standard error.
var loggedPlugin = harness.File{Name: ownPlugin.Name, Mode: ownPlugin.Mode, Content: slices.Concat(ownPlugin.Content, []byte("echo words-of-a-plugin\necho complaint-of-a-plugin >&2\n"))}

// chirped tells of each call of condor_chirp, in order, whether it exits with 0 (y) or not (n). That is so of get_job_attr in
// any case.
var chirped = Shell(`sed -n 's/^exit code 0$/y/p; s/^exit code .*/n/p' out | tr -d '\n'`)

// namesCases are about knobs and attributes that the other subjects do not set.
var namesCases = sinceThen([]Case{
	{Name: "advertised", Shows: "what starters say of themselves, and what knobs change in that",
		Submit: "arguments = ready sleep=1s\noutput = out",
		Steps: []Step{
			Ready(),
			starterSays("", "HasFileTransfer|HasJobTransferPlugins|HasPerFileEncryption|HasReconnect|HasJobDeferral|HasTransferInputRemaps|HasSelfCheckpointTransfers|HasOsUser|HasCommonFilesTransfer|HasJobNetworking|IsDaemonCore|HasJava|JavaVendor|JavaVersion|JavaSpecificationVersion|VMOfflineReason|HasMPI|HasEncryptExecuteDirectory"),
			starterSays("NO_JOB_NETWORKING=true", "HasJobNetworking"),
			starterSays("ENABLE_URL_TRANSFERS=false", "HasJobTransferPlugins|HasFileTransferPluginMethods"),
			starterSays("ENABLE_MULTIFILE_TRANSFER_PLUGINS=false", "HasFileTransferPluginMethods"),
			prints(`HasFileTransferPluginMethods = "tested"`, starterSays(testedPlugin+" tested_TEST_URL=tested://good/one", "HasFileTransferPluginMethods")),
			prints("", starterSays(testedPlugin+" tested_TEST_URL=tested://bad/one", "HasFileTransferPluginMethods|HasJava")),
			starterSays("", "HasFileTransferPluginMethods|CasePluginLevel|CasePluginWord"),
		}},
	sited(Case{Name: "knobs-environment", Shows: "knobs that decide about a job's variables and its directory",
		Files: []harness.File{Script("job", `env | grep -E '^(OMP_NUM_THREADS|MKL_NUM_THREADS|CONFORMANCE_THREADS|HOME|_CHIRP_DELAYED_UPDATE_PREFIX|_CONDOR_HIGHPORT|_CONDOR_LOWPORT|_CONDOR_BIN|SITE_GPUS)=' | sort
[ "$NVIDIA_VISIBLE_DEVICES" = none ] || echo not none
stat -c %a "$_CONDOR_SCRATCH_DIR"
pwd | sed 's/dir_[0-9]*/dir_N/'
`)}, Submit: "executable = job\noutput = out"},
		"STARTER_NUM_THREADS_ENV_VARS = OMP_NUM_THREADS, CONFORMANCE_THREADS\nSTARTER_SETS_HOME_ENV = false\nCHIRP_DELAYED_UPDATE_PREFIX = Site*\n"+
			"OUT_LOWPORT = 47000\nOUT_HIGHPORT = 47999\nBIN = $(BIN)/.\nAUTO_SET_NVIDIA_VISIBLE_DEVICES = false\n"+
			"ENVIRONMENT_FOR_AssignedGPUs = SITE_GPUS\nENVIRONMENT_VALUE_FOR_UnAssignedGPUs = nothing\nJOB_EXECDIR_PERMISSIONS = group\nSTARTER_NESTED_SCRATCH = false",
		Ends(), prints("CONFORMANCE_THREADS=1\nOMP_NUM_THREADS=1\nSITE_GPUS=nothing\n_CHIRP_DELAYED_UPDATE_PREFIX=Site*\n_CONDOR_BIN=/usr/bin/.\n"+
			"_CONDOR_HIGHPORT=47999\n_CONDOR_LOWPORT=47000\nnot none\n750\n/var/lib/condor/execute/jobs/dir_N", Shell("cat out"))).onRequest(),
	sited(Case{Name: "knobs-permissions", Shows: "a sandbox that everybody may enter",
		Files:  []harness.File{Script("job", "stat -c %a \"$_CONDOR_SCRATCH_DIR\"\n")},
		Submit: "executable = job\noutput = out"},
		"JOB_EXECDIR_PERMISSIONS = world").onRequest(),
	sited(chirpCase("knobs-chirp-few", "chirp without files, and with fewer delayed updates", wantIO+"+WantRemoteUpdates = true\n",
		`chirp set_job_attr_delayed ChirpOne 1; chirp set_job_attr_delayed SiteOne 2; chirp set_job_attr_delayed SiteTwo 3; chirp set_job_attr_delayed SiteThree 4; chirp set_job_attr_delayed SiteOne 5
chirp set_job_attr MyNumber 1; chirp get_job_attr MyNumber; chirp ulog 'a line'; chirp fetch script none`),
		"CHIRP_DELAYED_UPDATE_PREFIX = Site*\nCHIRP_DELAYED_UPDATE_MAX_ATTRS = 2\nENABLE_CHIRP_IO = false", Ends(), prints("nyynyyyyn", chirped)).onRequest(),
	sited(chirpCase("knobs-chirp-files", "chirp with files only", wantIO,
		`chirp set_job_attr_delayed ChirpOne 1; chirp set_job_attr MyNumber 1; chirp get_job_attr JobUniverse; chirp ulog 'a line'; chirp fetch script copy; cmp script copy && echo the same`),
		"ENABLE_CHIRP_UPDATES = false\nENABLE_CHIRP_DELAYED = false", Ends(), prints("nnyny", chirped)).onRequest(),
	sited(chirpCase("knobs-chirp-off", "no chirp", wantIO,
		`chirp get_job_attr JobUniverse | sed 's|/[^ ]*/dir_[0-9]*/|dir_N/|'; echo "config: $_CONDOR_CHIRP_CONFIG"`),
		"ENABLE_CHIRP = false", Ends(), prints("n", chirped)).onRequest(),
	sited(Case{Name: "knobs-figures", Shows: "which figures are reported, over which time, and what counts as use of memory",
		Submit: "arguments = ready sleep=4s\noutput = out"},
		"MEMORY_USAGE_METRIC = 4711\nSTATISTICS_TO_PUBLISH = STARTER:2\nSTATISTICS_WINDOW_SECONDS = 2\nSTATISTICS_WINDOW_QUANTUM = 1\nSTARTER_UPDATE_INTERVAL = 1\nSTARTER_UPDATE_INTERVAL_TIMESLICE = 0.25",
		Ends(), prints("4711", inHistory("MemoryUsage")), prints("true", inHistory("isInteger(BlockReadBytes)")), prints("true", inHistory(shortWindow))).onRequest(),
	sited(Case{Name: "knobs-own-window", Shows: "a window of statistics that is the starter's own",
		Submit: "arguments = ready sleep=4s\noutput = out"},
		"STATISTICS_WINDOW_SECONDS_STARTER = 2\nSTATISTICS_WINDOW_QUANTUM_STARTER = 1\nSTATISTICS_WINDOW_SECONDS = 1200\nSTATISTICS_WINDOW_QUANTUM = 240\nSTARTER_UPDATE_INTERVAL = 1\nSTARTER_UPDATE_INTERVAL_MAX = 77",
		Ends(), prints("true", inHistory(shortWindow))).onRequest(),
	sited(Case{Name: "knobs-fewer-figures", Shows: "no figures of late", Submit: "arguments = ready sleep=1s\noutput = out"},
		"STATISTICS_TO_PUBLISH = STARTER:1!R",
		Ends(), prints("true", inHistory("RecentBlockReadKbytes is undefined && BlockReadKbytes isnt undefined"))).onRequest(),
	sited(withHooks(Case{Name: "knobs-hooks", Shows: "hooks that the site chooses, whatever the job wants",
		Files: []harness.File{{Name: "first", Content: []byte("1\n")}}},
		"FAIL", `echo "$*"`, "arguments = from the user\ntransfer_input_files = first"),
		"STARTER_JOB_HOOK_KEYWORD = CHANGE").onRequest(),
	sited(withHooks(Case{Name: "knobs-default-hooks", Shows: "hooks for a job whose keyword the site does not know",
		Files: []harness.File{{Name: "first", Content: []byte("1\n")}}},
		"nobodys", `echo "$*"`, "arguments = from the user\ntransfer_input_files = first"),
		"STARTER_DEFAULT_JOB_HOOK_KEYWORD = CHANGE").onRequest(),
	sited(Case{Name: "knobs-default-hooks-unsaid", Shows: "hooks for a job that names none",
		Files:  []harness.File{{Name: "first", Content: []byte("1\n")}, Script("job", `echo "$*"`)},
		Submit: "executable = job\narguments = from the user\ntransfer_input_files = first\noutput = out"},
		"STARTER_DEFAULT_JOB_HOOK_KEYWORD = CHANGE").onRequest(),
	sited(steered("knobs-checkpoint", "a job whose claim ends when it has saved a checkpoint, where the starter does not ask about that",
		"cat state && exit 0\necho saved >state\nsleep 2\nexit 85\n", "checkpoint_exit_code = 85\ntransfer_checkpoint_files = state\n+ConformanceClosing = True"),
		"CHECK_REACTIVATE_AFTER_CHECKPOINT = false").onRequest(),
	sited(twice(steered("knobs-graceful", "SIGTERM to the starter, and a job that does not end before the site's patience does",
		later+"trap '' TERM\n"+ready+rest, onEvict)),
		"SHUTDOWN_GRACEFUL_TIMEOUT = 3", Ready(), signalStarter("TERM"), Gone().About(3*time.Second), Executes(2)).onRequest(),
	sited(Case{Name: "knobs-affinity", Shows: "the processor that the site names for a slot", Files: affinity, Submit: "executable = job\noutput = out"},
		"ENFORCE_CPU_AFFINITY = true\n"+affinities).onRequest(),
	sited(Case{Name: "knobs-affinity-assigned", Shows: "the processor that the startd has assigned counts more", Files: affinity, Submit: "executable = job\noutput = out"},
		"ENFORCE_CPU_AFFINITY = true\nSTARTD_ASSIGNED_AFFINITY = 0\n"+affinities).onRequest(),
	sited(Case{Name: "knobs-plugin-words", Pools: withRoot, Shows: "the words of a plugin that succeeds, in the log", Files: []harness.File{loggedPlugin},
		Submit: "arguments = cat=one ready sleep=2s\noutput = out\ntransfer_input_files = mine://ok/one\ntransfer_plugins = mine=own.sh"},
		"LOG_FILETRANSFER_PLUGIN_STDOUT_ON_SUCCESS = D_ALWAYS\nREDIRECT_FILETRANSFER_PLUGIN_STDERR_TO_STDOUT = false",
		Ready(), says("words-of-a-plugin", "said"), says("complaint-of-a-plugin", "not said")).onRequest(),
	sited(fetches(Case{Name: "knobs-plugin-data", Shows: "plugins for lists that get no data of the job",
		Files: []harness.File{{Name: "plain", Content: []byte("plain\n")}}},
		"case://told/told, plain", "environment = \"CASE_OF=mine\"\n+PluginData = \"data of all\"\n+case_PluginData = \"data of one\"\n"),
		"ASSUME_COMPATIBLE_MULTIFILE_PLUGINS = false").onRequest(),
	sited(Case{Name: "knobs-log", Shows: "a log that begins anew with each job, and how its times are written",
		Submit: "arguments = ready sleep=1s\noutput = out"},
		"TRUNC_STARTER_LOG_ON_OPEN = true\nDEBUG_TIME_FORMAT = at-%Y-\nSTARTER_DEBUG = D_ALWAYS\nALL_DEBUG = D_PID",
		Ready(), prints("1\n1", EP("sh", "-c", `f=$(condor_config_val LOG)/StarterLog.<slot>; grep -c 'universe job with ID' "$f"; head -n 1 "$f" | grep -c '^at-20[0-9][0-9]-.*pid:'`))).onRequest(),
	sited(Case{Name: "knobs-log-stamps", Shows: "a log under another name, whose times are seconds", Submit: "arguments = ready sleep=1s\noutput = out"},
		"TRUNC_STARTER_LOG_ON_OPEN = true\nLOGS_USE_TIMESTAMP = true\nSTARTER_DEBUG = D_ALWAYS\nSTARTER_LOG = $(LOG)/KnobsLog",
		Ready(), prints("1", EP("sh", "-c", `f=$(condor_config_val LOG)/KnobsLog.<slot>; head -n 1 "$f" | grep -c -E '^\(?[0-9]{10}'`))).onRequest(),
	{Name: "environment-delimiter", Shows: "an environment in the old syntax whose variables another character separates",
		Files:  []harness.File{Script("job", `echo "$ONE $TWO"`)},
		Submit: "executable = job\noutput = out\n+Environment = undefined\n+Env = \"ONE=1|TWO=2;3\"\n+EnvDelim = \"|\""},
	steered("deferral-offset", "deferral_time by the clock of the submit side, which is said to be another",
		strings.ReplaceAll(deferredScript, " - 6", " - 4"), "deferral_time = (QDate + 250)\ndeferral_window = 60\n+DeferralOffset = -246").onRequest(),
	{Name: "relative-executable", OnRequest: true, Shows: "a relative executable that keeps its path is not looked for in PATH", Stuck: true,
		Submit: "executable = /bin/true\ntransfer_executable = False\noutput = out\n+Cmd = \"echo\"\n+PreserveRelativeExecutable = true"},
	twice(steered("not-spooled", "a vacated job that does not want its files kept, although it would have them transferred",
		later+traps("TERM")+"echo made >state\n"+ready+untilCaught, onEvict+"+SpoolOnEvict = False",
		Ready(), Tool("condor_vacate_job"), Executes(2))).onRequest(),
	{Name: "success-by-signal", Shows: "output that comes back only from a job that succeeds, where success is a signal",
		Files: []harness.File{Script("job", "echo x >made\nkill -USR1 $$\n")}, Submit: "executable = job\nwhen_to_transfer_output = ON_SUCCESS\ntransfer_output_files = made\noutput = out\n" +
			"+JobSuccessExitBySignal = true\n+JobSuccessExitSignal = 10"},
	{Name: "success-by-other-signal", OnRequest: true, Shows: "such a job that dies of another signal",
		Files: []harness.File{Script("job", "echo x >made\nkill -USR2 $$\n")}, Submit: "executable = job\nwhen_to_transfer_output = ON_SUCCESS\ntransfer_output_files = made\noutput = out\n" +
			"+JobSuccessExitBySignal = true\n+JobSuccessExitSignal = 10"},
})

// shortWindow is true of a job whose windows of statistics were shorter than its life.
const shortWindow = "StatsLifetimeStarter >= 3 && RecentStatsLifetimeStarter < StatsLifetimeStarter"

// affinity is a job that says on which processors it may run; affinities names the second one for all slots.
var affinity = []harness.File{Script("job", "grep Cpus_allowed_list /proc/self/status\n")}

const affinities = "SLOT1_CPU_AFFINITY = 1\nSLOT2_CPU_AFFINITY = 1\nSLOT3_CPU_AFFINITY = 1\nSLOT4_CPU_AFFINITY = 1\nSLOT5_CPU_AFFINITY = 1\nSLOT6_CPU_AFFINITY = 1"

// starterSays runs the starter as the startd does that asks what it can do, with knobs in its environment, and compares
// the attributes of these names.
func starterSays(knobs, names string) Step {
	return EP("sh", "-c", `for knob in $1; do export "_CONDOR_$knob"; done; "$(condor_config_val STARTER)" -classad 2>/dev/null | grep -E "^($0) = " | sed 's/ = True$/ = true/; s/ = False$/ = false/' | sort`, names, knobs)
}

// testedPlugin makes a plugin the only one of the site.
const testedPlugin = "FILETRANSFER_PLUGINS=" + programs + "/names/tested_plugin.sh"

// namesSetup has that plugin, which writes nothing but what it is asked for.
var namesSetup = Setup{Programs: []harness.File{slowProgram, Script("names/tested_plugin.sh", `if [ "$1" = -classad ]; then
echo 'MultipleFileSupport = true'; echo 'PluginVersion = "1.0"'; echo 'PluginType = "FileTransfer"'; echo 'SupportedMethods = "tested"'
exit; fi
while [ $# -gt 0 ]; do case $1 in -infile) in=$2; shift;; -outfile) out=$2; shift;; esac; shift; done
grep -q tested://good "$in" || exit 1
name=$(grep -o 'LocalFileName = "[^"]*"' "$in" | cut -d'"' -f2)
echo tested >"$name"
echo '[ TransferUrl = "tested://good/one"; TransferSuccess = true; TransferProtocol = "tested"; TransferTotalBytes = 7; TransferFileName = "one" ]' >"$out"
`)}}
