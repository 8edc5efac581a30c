package job

import (
	"errors"
	"fmt"
	"strings"

	"podstarter/classads"
)

// Hold codes of refusals (condor_utils/condor_holdcodes.h).
const (
	holdNotStarted   = 6
	holdPrimaryGroup = 49
)

// wish is something that the stock starter does for a job that asks, and this one
// does not.
type wish struct {
	command string // as the user wrote it
	wanted  func(*classads.Ad, Info) bool
	code    int
	reason  string // with what the user can do
}

// refusals are the wishes for which a job is held. Each comes from a submit command,
// or from an attribute (with a plus sign). To obey only the rest would surprise the
// user. A wish that changes nothing here, such as run_as_owner, is not refused.
var refusals = []wish{
	{"tool_daemon_cmd", hasText("ToolDaemonCmd"), holdNotStarted, // tool_daemon_proc.cpp:StartJob
		"no tool is started beside the job; leave it out, and start the tool in the job's own script"},
	{"suspend_job_at_exec", isTrue("SuspendJobAtExec"), holdNotStarted, // os_proc.cpp:StartJob
		"nothing here would wake the job; leave it out"},
	{"encrypt_execute_directory", isTrue("EncryptExecuteDirectory"), holdNotStarted, // starter.cpp:createTempExecuteDir
		"the starter cannot encrypt the volume that the sandbox is on; leave it out, or require machines with HasEncryptExecuteDirectory"},
	// With file transfer, the group counts at the access point, where the shadow takes it
	// (baseshadow.cpp:baseInit). Here it would be that of shared files (jic_shadow.cpp:initUserPriv).
	{"primary_unix_group", groupOfSharedFiles, holdPrimaryGroup,
		"the job has the user and group of its container, also on a shared file system; leave it out, or transfer files (should_transfer_files = YES)"},
	// The stock starter writes wherever the job's user may, or not at all (starter.cpp:OpenManifestFile).
	{"manifest_dir", manifestOutside, holdNotStarted,
		"it names no directory below the job's sandbox; name one, or leave it out and write manifest = True"},
	{"+StarterUserLog", logBesideShadow, holdNotStarted, // local_user_log.cpp:initFromJobAd
		"no event log is written in the sandbox; leave it out, and read the one of the submit command log ="},
	{"+RequestedChroot", hasText("RequestedChroot"), holdNotStarted, // vanilla_proc.cpp:StartJob, until 23.10
		"no other root directory can be chosen; leave it out, and name an image (universe = docker)"},
	{"+UseParrot", isTrue("UseParrot"), holdNotStarted, // os_proc.cpp:StartJob
		"the site's Parrot is not in the job's container; leave it out, or use an image with Parrot and start it yourself"},
	{"+WantExecutionVisaFromStarter", isTrue("WantExecutionVisaFromStarter"), holdNotStarted, // job_info_communicator.cpp:writeExecutionVisa
		"no visa is written; leave it out, and read the job's ad in the file that _CONDOR_JOB_AD names"},
	{"+StarterWaitForDebug", isNumber("StarterWaitForDebug"), holdNotStarted, // job_info_communicator.cpp:checkForStarterDebugging
		"the starter waits for no debugger; leave it out"},
}

// Refused says why the job is held before any of its files is moved; nil if it is not.
// The reason names each submit command that cannot be obeyed. inPod says that jobs run in
// containers of their own.
func Refused(ad *classads.Ad, i Info, inPod bool) *Failure {
	if err := checkUniverse(i.Universe, inPod); err != nil {
		return &Failure{Code: holdNotStarted, Err: err}
	}
	code, reasons := 0, []string(nil)
	for _, w := range refusals {
		if w.wanted(ad, i) {
			reasons = append(reasons, w.command+" cannot be obeyed here: "+w.reason)
			if code == 0 {
				code = w.code
			}
		}
	}
	if code == 0 {
		return nil
	}
	return &Failure{Code: code, Err: errors.New(strings.Join(reasons, "; "))}
}

// checkUniverse returns an error if jobs of this universe cannot run here. The java universe
// runs them by the machine's own Java, which no container of a pod has.
func checkUniverse(u Universe, inPod bool) error {
	advice := "leave the universe out, or name an image (universe = docker)"
	runs := "vanilla, docker, container and parallel"
	if !inPod {
		runs = "vanilla, container, parallel and java"
	}
	switch u {
	case Vanilla, Local, Parallel:
		return nil
	case Java:
		if !inPod {
			return nil
		}
		advice = "name an image with Java (universe = docker) and make java the executable"
	case MPI:
		advice = "use the parallel universe"
	}
	said := "universe = " + strings.ToLower(u.String())
	if u.String() == unknownUniverse {
		said = fmt.Sprintf("JobUniverse = %d", int(u))
	}
	return fmt.Errorf("%s cannot be obeyed here, where only jobs of the %s universes run: %s", said, runs, advice)
}

// hasText, isTrue and isNumber take an attribute as the stock starter does: a value of
// another type counts as none (LookupString, LookupBool, LookupInteger).
func hasText(name string) func(*classads.Ad, Info) bool {
	return func(ad *classads.Ad, _ Info) bool { return ad.StringOr(name, "") != "" }
}

func isTrue(name string) func(*classads.Ad, Info) bool {
	return func(ad *classads.Ad, _ Info) bool { return ad.BoolOr(name, false) }
}

func isNumber(name string) func(*classads.Ad, Info) bool {
	return func(ad *classads.Ad, _ Info) bool { return ad.IntOr(name, 0) != 0 }
}

// logBesideShadow is for jobs that have a shadow, which writes their log. For work that the startd fetched, starter/standin does.
func logBesideShadow(ad *classads.Ad, i Info) bool {
	return i.ShadowAddress != "" && ad.StringOr("StarterUserLog", "") != ""
}

func groupOfSharedFiles(ad *classads.Ad, i Info) bool {
	return !i.FileTransfer && ad.StringOr("PrimaryUnixGroup", "") != ""
}
