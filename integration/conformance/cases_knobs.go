package conformance

import (
	"context"
	"fmt"
	"strings"
	"time"

	"podstarter/integration/harness"
)

// briefly is a job that lives for a second.
const briefly = "arguments = ready sleep=1s\noutput = out"

// logName is the path of the log of the job's slot, for the shell in an execution point whose knobs name the log KnobsLog.
const logName = `"$(condor_config_val LOG)/KnobsLog.<slot>"`

// fullLogs makes logs of all slots that are larger than the sited cases allow.
func fullLogs() Step {
	return Quietly(EP("sh", "-c", `cd "$(condor_config_val LOG)" && rm -f KnobsLog.* && for n in 1 2 3 4 5 6 7 8; do for slot in slot$n slot1_$n; do
	head -c 70000 /dev/zero | tr '\0' '\n' >KnobsLog.$slot && chown --reference=StartLog KnobsLog.$slot || exit; done; done`))
}

// knobsCases are about further knobs of execution points: those that our starter does not obey, and those that other cases do not show.
var knobsCases = sinceThen([]Case{
	sited(Case{Name: "knobs-not-obeyed", Shows: "knobs that our starter does not obey: the job ends well, and our log names each", Submit: briefly},
		`TRUNC_STARTER_LOG_ON_OPEN = true
CGROUP_MEMORY_LIMIT_POLICY = soft
CGROUP_HARD_MEMORY_LIMIT_EXPR = 1024 * 1024 * 1024
CGROUP_LOW_MEMORY_LIMIT = 1024
CLASSAD_USER_LIBS = /no/such/library.so
CLASSAD_USER_PYTHON_MODULES = no_such_module
CLASSAD_USER_PYTHON_LIB = /no/such/python.so
DATA_REUSE_DIRECTORY = /no/such/directory
DOCKER_DROP_ALL_CAPABILITIES = false
DOCKER_RUN_AS_ROOT = true
LIGO_NFS_SERVER_HACKS = true
MOUNT_UNDER_SCRATCH = ifThenElse(ConformanceMounts =?= true, "/srv", "/tmp")
NAMED_CHROOT = conformance=/no/such/root
PARROT = /no/such/parrot
PID_SNAPSHOT_INTERVAL = 2
RUN_FILETRANSFER_PLUGINS_WITH_ROOT = true
SINGULARITY_IS_SETUID = true
SOFT_UID_DOMAIN = true
SSH_TO_JOB_SSHD = /no/such/sshd
SSH_TO_JOB_SSHD_ARGS = "-i"
SSH_TO_JOB_SSHD_CONFIG_TEMPLATE = /no/such/template
SSH_TO_JOB_SSH_KEYGEN = /no/such/keygen
STARTD_ENFORCE_DISK_LIMITS = true
STARTER_NETWORK_LOG = $(LOG)/KnobsNetworkLog
TCP_KEEPALIVE_INTERVAL = 60
NOBODY_SLOT_USER = nobody`,
		Ready(), notObeyed("CGROUP_MEMORY_LIMIT_POLICY", "CGROUP_HARD_MEMORY_LIMIT_EXPR", "CGROUP_LOW_MEMORY_LIMIT", "CLASSAD_USER_LIBS", "CLASSAD_USER_PYTHON_MODULES",
			"CLASSAD_USER_PYTHON_LIB", "DATA_REUSE_DIRECTORY", "DOCKER_DROP_ALL_CAPABILITIES", "DOCKER_RUN_AS_ROOT", "LIGO_NFS_SERVER_HACKS", "MOUNT_UNDER_SCRATCH", "NAMED_CHROOT",
			"PARROT", "PID_SNAPSHOT_INTERVAL", "RUN_FILETRANSFER_PLUGINS_WITH_ROOT", "SINGULARITY_IS_SETUID", "SOFT_UID_DOMAIN", "SSH_TO_JOB_SSHD", "SSH_TO_JOB_SSHD_ARGS",
			"SSH_TO_JOB_SSHD_CONFIG_TEMPLATE", "SSH_TO_JOB_SSH_KEYGEN", "STARTD_ENFORCE_DISK_LIMITS", "STARTER_NETWORK_LOG", "TCP_KEEPALIVE_INTERVAL", "NOBODY_SLOT_USER")).onRequest(),
	sited(Case{Name: "knobs-syslog", Shows: "a log in syslog", Submit: briefly},
		"TRUNC_STARTER_LOG_ON_OPEN = true\nLOG_TO_SYSLOG = true", Ready(), notObeyed("LOG_TO_SYSLOG")).onRequest(),
	stopped("knobs-encrypted", "a site that wants sandboxes encrypted: our starter runs no job", "ENCRYPT_EXECUTE_DIRECTORY = true",
		"ENCRYPT_EXECUTE_DIRECTORY: .* so that no job runs").onRequest(),
	stopped("knobs-encrypted-disk", "a site that wants the disk of sandboxes encrypted: our starter runs no job", "STARTD_ENCRYPT_EXECUTE_DISK = true",
		"STARTD_ENCRYPT_EXECUTE_DISK: .* so that no job runs").onRequest(),
	stopped("knobs-remote", "a command that runs jobs elsewhere: our starter runs no job", "STARTER_REMOTE_CMD = /bin/true\nSTARTER_REMOTE_DIR = /tmp",
		"STARTER_REMOTE_CMD: .* so that no job runs").onRequest(),
	sited(Case{Name: "knobs-log-rotated", Shows: "a log that has grown too large: how many old ones are kept, and their names", Submit: briefly},
		"STARTER_LOG = $(LOG)/KnobsLog\nSTARTER_DEBUG = D_ALWAYS\nMAX_STARTER_LOG = 60000\nMAX_NUM_STARTER_LOG = 2",
		Ready(), prints(".\n.nnnnnnnnTnnnnnn", EP("sh", "-c", `ls `+logName+` `+logName+`.* | sed 's/.*slot[0-9_]*//; s/[0-9]/n/g; s/^$/./'`))).after(fullLogs()).onRequest(),
	sited(Case{Name: "knobs-log-defaults", Shows: "the same by the knobs for all daemons, with what is written", Submit: briefly},
		"STARTER_LOG = $(LOG)/KnobsLog\nSTARTER_DEBUG =\nDEFAULT_DEBUG = D_PID\nMAX_STARTER_LOG =\nMAX_DEFAULT_LOG = 60000",
		Ready(), prints("old of 70000\nwith pid", EP("sh", "-c", `echo "old of $(head -c 70000 `+logName+`.old | tr -d -c '\n' | wc -c)"; head -n 3 `+logName+` | grep -q '(pid:' && echo with pid`))).after(fullLogs()).onRequest(),
	ofAccount("knobs-owner", "the account of the job's owner, as the access point is in the same domain",
		"STARTER_ALLOW_RUNAS_OWNER = true", "<user>").onRequest(),
	ofAccount("knobs-nobody", "the account that the site names for all slots, as the job's owner is of another domain",
		"STARTER_ALLOW_RUNAS_OWNER = true\nUID_DOMAIN = elsewhere.invalid\nNOBODY_SLOT_USER = games\n"+noSlotUsers(8), "games").onRequest(),
	ofAccount("knobs-not-owner", "the account of a slot, where no job may run as its owner",
		"STARTER_ALLOW_RUNAS_OWNER = false\n"+strings.ReplaceAll(noSlotUsers(8), "=", "= games"), "games").onRequest(),
	twice(Case{Name: "knobs-tickets-old", Shows: "tickets that are too old for the site: the access point is asked for others, and has none", Alone: true,
		Files: []harness.File{Script("job", `cat "${KRB5CCNAME#FILE:}"`+"\n")}, Submit: "hold = true\nexecutable = job\noutput = out\nMY.SendCredential = True",
		Steps: append(append([]Step{tickets("old"), Quietly(EP("sh", "-c", `touch -d '1 hour ago' "$0"/*.cc`, ticketDir))},
			withKnobs("SEC_CREDENTIAL_REFRESH_INTERVAL = 60", comesBack())...), Ends())}).onRequest(),
	delegated("knobs-proxy-lifetime", "how long a proxy is delegated for", "", "DELEGATE_JOB_GSI_CREDENTIALS_LIFETIME = 5000", 4000*time.Second, 5001*time.Second).onRequest(),
	delegated("knobs-proxy-job", "how long a proxy is delegated for, if the job says it", "delegate_job_GSI_credentials_lifetime = 3000\n",
		"DELEGATE_JOB_GSI_CREDENTIALS_LIFETIME = 5000", 2000*time.Second, 3001*time.Second).onRequest(),
	delegated("knobs-proxy-whole", "a proxy that lives as long as the access point allows", "",
		"DELEGATE_JOB_GSI_CREDENTIALS = false\nDELEGATE_JOB_GSI_CREDENTIALS_LIFETIME = 5000", 20*time.Hour, 241*time.Hour).onRequest(),
	sited(chirpCase("knobs-first-update", "no update before the site's time for the first", wantIO, "sleep 5\nchirp get_job_attr NumPids"),
		"STARTER_INITIAL_UPDATE_INTERVAL = 100\nSTARTER_UPDATE_INTERVAL = 300", Ends(), prints("1", Shell("grep -c -i undefined out"))).onRequest(),
	twice(sited(Case{Name: "knobs-plugin-complaint", Pools: withRoot, Shows: "the words of a plugin that fails, which the site does not want in the log",
		Files:  append(text("plain"), harness.File{Name: ownPlugin.Name, Mode: ownPlugin.Mode, Content: []byte("#!/bin/sh\necho words-of-a-failure\nexit 1\n")}),
		Submit: "arguments = out=ran\noutput = out\ntransfer_plugins = mine=own.sh" + firstTime("mine://fails/one", "plain")},
		"STARTER_DEBUG = D_ALWAYS\nLOG_FILETRANSFER_PLUGIN_STDOUT_ON_FAILURE = D_FULLDEBUG",
		comesBack(), prints("not said", EP("sh", "-c", `cat "$(condor_config_val LOG)"/StarterLog.slot* | grep -q words-of-a-failure && echo said || echo not said`))).
		after(Quietly(EP("sh", "-c", `cd "$(condor_config_val LOG)" && for log in StarterLog.slot*; do : >"$log"; done`)))).onRequest(),
	sited(Case{Name: "knobs-mums", Shows: "a starter that asks the shadow for no guidance: it is not told to give the job up",
		Files:  []harness.File{Script("job.sh", "ls here; exit 3\n"), {Name: "here", Content: []byte("input\n")}},
		Submit: "executable = job.sh\ntransfer_input_files = here\noutput = out\n+_condor_guidance_test_case = " + `{ [ Command = "Abort" ], [ Command = "CarryOn" ] }`},
		"GUIDANCE_MUMS_THE_WORD = true", Ends(), Quietly(Shell("rm /tmp/guided.<cluster>"))).after(Quietly(Shell("touch /tmp/guided.<cluster>"))).onRequest(),
	sited(steered("knobs-metrics", "a figure that a program of the startd measures, in the job's ad", ready+"while [ ! -e go ]; do sleep 0.1; done\n", ""),
		"STARTD_CRON_JOBLIST = CONFORMANCE\nSTARTD_CRON_CONFORMANCE_METRICS = SUM:ConformanceThing\nSTARTER_UPDATE_INTERVAL = 1",
		Ready(), Quietly(EP("sh", "-c", `dir="<scratch>"; [ ! -d "$dir/../htcondor" ] || dir="$dir/../htcondor"; f="$dir/.update.ad"
for i in $(seq 40); do grep -q '^ConformanceThing' "$f" 2>/dev/null || echo 'ConformanceThingUsage = 7' >>"$f"; sleep 0.1; done`)),
		EP("touch", "<scratch>/go"), Ends(), prints("7", inHistory("ConformanceThingUsage"))).onRequest(),
	sited(Case{Name: "knobs-classads", Shows: "maps of the site in its expressions, homes of users, and names that count strictly",
		Files: []harness.File{Script("job", "nice\nulimit -v\n")}, Submit: "executable = job\noutput = out\n+ConformanceAddressSpace = 3000"},
		`STARTER_CLASSAD_USER_MAP_NAMES = one, two
CLASSAD_USER_MAPDATA_one @=end
* alice 3
@end
CLASSAD_USER_MAPDATA_two @=end
* ali 5
@end
CLASSAD_USER_MAP_PREFIX_two = true
CLASSAD_ENABLE_USER_HOME = false
STRICT_CLASSAD_EVALUATION = true
JOB_RENICE_INCREMENT = int(userMap("one", "alice", "0", "9")) + int(userMap("two", "alice", "0", "1")) + ifThenElse(isString(userHome("root")), 1, 4)
STARTER_RLIMIT_AS = ifThenElse(ConformanceAddressSpace =!= undefined, ConformanceAddressSpace, 0)`,
		Ends(), prints("12\nunlimited", Shell("cat out"))).onRequest(),
	sited(Case{Name: "knobs-domain", Shows: "IF_NEEDED, where the knob and not the slot says which file system is shared",
		Submit: strings.NewReplacer("= NO", "= IF_NEEDED", "TARGET.FileSystemDomain", `"case.invalid"`).Replace(withoutTransfer) +
			"arguments = \"-c '[ ! -e in ] && exit 10'\"\ntransfer_input_files = in\n", Files: text("in")},
		"FILESYSTEM_DOMAIN = case.invalid").onRequest(),
	sited(Case{Name: "knobs-ports", Shows: "a range of ports for both directions, and another for those who listen",
		Files: []harness.File{Script("job", "env | grep -E '^_CONDOR_(HIGH|LOW)PORT=' | sort\n")}, Submit: "executable = job\noutput = out"},
		"LOWPORT = 42000\nHIGHPORT = 42999\nIN_LOWPORT = 41000\nIN_HIGHPORT = 41999",
		Ends(), prints("_CONDOR_HIGHPORT=42999\n_CONDOR_LOWPORT=42000", Shell("cat out"))).onRequest(),
	sited(steered("knobs-core", "core files of the starter, which ours never leaves: they would hold keys", ready+"while [ ! -e go ]; do sleep 0.1; done\n", ""),
		"ABORT_ON_EXCEPTION = true\nCREATE_CORE_FILES = true\nCORE_FILE_NAME = knobs.core", Ready(), noCore(), EP("touch", "<scratch>/go")).onRequest(),
	sited(visits("keygen", "condor_ssh_to_job, where the site names the type of its keys"), "SSH_TO_JOB_SSH_KEYGEN_ARGS = \"-N '' -C '' -q -f %f -t ecdsa\"",
		Runs("lingers"), prints("Server host key: ecdsa-sha2-nistp256", inShell("the type of the server's key",
			`condor_ssh_to_job -auto-retry -ssh 'ssh -v' <job> true 2>&1 | grep -o 'Server host key: [a-z0-9-]*'`)), goes(), Ends()).onRequest(),
})

// noCore fails the case if our starter may write core files. The stock starter may.
func noCore() Step {
	return Do("whether the starter may write core files", func(ctx context.Context, r *Run) error {
		args, _ := r.arguments([]string{"sh", "-c", `p="<scratch>"; p="${p##*/dir_}"; awk '/^Max core file size/ {print $5}' "/proc/${p%%/*}/limits"`})
		result, err := r.Pool.TryPilot(ctx, r.Side, args...)
		if may := strings.TrimSpace(result.Stdout) != "0"; err == nil && (result.Code != 0 || may != r.Side.IsStock()) {
			err = fmt.Errorf("the limit of the size is %q %s", result.Stdout, result.Stderr)
		}
		return err
	})
}
