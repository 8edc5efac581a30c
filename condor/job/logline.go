package job

import (
	"fmt"
	"strings"
	"syscall"
	"time"
)

// condor_who finds jobs in a starter's log by some of these lines, word for word
// (condor_who/who.cpp:scan_a_log_for_info). They are logged without attributes.

// LineShadow says which shadow the starter serves.
func LineShadow(address string) string { return "Communicating with shadow " + address }

// LineStarting comes before the job's process is started.
func LineStarting(i Info) string {
	return fmt.Sprintf("Starting a %s universe job with ID: %s", i.Universe, i.ID())
}

// LineExec says what is about to run, and whether by docker's rules.
func LineExec(c Command, docker bool) string {
	what := c.Path
	if docker {
		what = "docker:" + what
	}
	return strings.TrimRight("About to exec "+what+" "+JoinV2(c.Args), " ")
}

// LineWrapped is LineExec for a command that [Command.Wrap] made
// (condor_starter.V6.1/os_proc.cpp:OsProc::StartJob).
func LineWrapped(c Command) string {
	return strings.TrimRight("Using wrapper "+c.Path+" to exec "+JoinV2(c.Args), " ")
}

// LineStarted says that the process runs.
func LineStarted(pid int) string { return fmt.Sprintf("Create_Process succeeded, pid=%d", pid) }

// LineExited says that the process has ended.
func LineExited(pid int, status syscall.WaitStatus) string {
	if status.Signaled() {
		return fmt.Sprintf("Process exited, pid=%d, signal=%d", pid, int(status.Signal()))
	}
	return fmt.Sprintf("Process exited, pid=%d, status=%d", pid, status.ExitStatus())
}

// LineNotStarted says that a program could not be executed; errno, cause and detail are
// those of [ExecFailure] (condor_starter.V6.1/os_proc.cpp:OsProc::StartJob).
func LineNotStarted(c Command, errno syscall.Errno, cause, detail string) string {
	return fmt.Sprintf("Create_Process(%s,%s, ...) failed: %s", c.Path, JoinV2(c.Args), execTrouble(errno, cause, detail))
}

// LineStdFile says which file the job has for a standard file, which is named as in
// [StdLabel] (condor_starter.V6.1/user_proc.cpp:UserProc::openStdFile).
func LineStdFile(name, path string) string { return StdLabel(name) + ": " + path }

// StdLabel is what stock's log calls the standard file "stdin", "stdout" or "stderr".
func StdLabel(name string) string {
	switch name {
	case "stdin":
		return "Input file"
	case "stdout":
		return "Output file"
	}
	return "Error file"
}

// LineDeferral says when the job is to start; 0 for at once
// (condor_starter.V6.1/starter.cpp:Starter::jobWaitUntilExecuteTime).
func LineDeferral(i Info, wait time.Duration) string {
	if wait == 0 {
		return fmt.Sprintf("Job %s set to execute immediately", i.ID())
	}
	return fmt.Sprintf("Job %s deferred for %d seconds", i.ID(), int64(wait.Seconds()))
}

// LineSkipped says that the job does not start because its input did not arrive
// (condor_starter.V6.1/starter.cpp:Starter::skipJobImmediately).
func LineSkipped(i Info) string {
	return fmt.Sprintf("Skipping execution of Job %s because of setup failure.", i.ID())
}

// ExecFailure is the hold reason of a job whose program could not be executed
// (condor_starter.V6.1/os_proc.cpp:OsProc::StartJob). The cause is stock's, such as
// [BadInterpreter], or empty. The detail, if any, is ours and comes after stock's sentence.
func ExecFailure(c Command, errno syscall.Errno, cause, detail string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Failed to execute '%s'", c.Path)
	if len(c.Args) > 0 {
		b.WriteString(" with arguments " + JoinV2(c.Args))
	}
	return b.String() + ": " + execTrouble(errno, cause, detail)
}

// execTrouble is what failed, in stock's words, and then in ours.
func execTrouble(errno syscall.Errno, cause, detail string) string {
	if cause != "" {
		cause += " "
	}
	if detail != "" {
		detail = ": " + detail
	}
	return fmt.Sprintf("%s(errno=%d: '%s')%s", cause, int(errno), Strerror(errno), detail)
}

// BadInterpreter is the cause of an [ExecFailure] of a script whose interpreter does not
// exist (condor_daemon_core.V6/daemon_core.cpp:DaemonCore::Create_Process).
func BadInterpreter(name string) string {
	return fmt.Sprintf("invalid interpreter (%s) specified on first line of script", name)
}

// BadDirectory is the cause of an [ExecFailure] for lack of the job's initial directory
// (condor_daemon_core.V6/daemon_core.cpp:DaemonCore::Create_Process).
func BadDirectory(dir string) string {
	return fmt.Sprintf("Cannot access initial working directory \"%s\"", dir)
}

// ScriptExecFailure is ExecFailure for a PreCmd or PostCmd
// (condor_starter.V6.1/script_proc.cpp:ScriptProc::StartJob). It omits a detail
// that only repeats the error number.
func ScriptExecFailure(c Command, errno syscall.Errno, detail string) string {
	text := fmt.Sprintf("Failed to execute '%s'", c.Path)
	if len(c.Args) > 0 {
		text += " with arguments " + JoinV2(c.Args)
	}
	text += ": " + Strerror(errno)
	if detail != "" && !strings.HasPrefix(detail, "there is no such file") {
		text += " (" + detail + ")"
	}
	return text
}

// OpenFailure is the hold reason of a job whose standard file could not be
// opened (condor_starter.V6.1/os_proc.cpp:OsProc::openStdFile); as is
// "standard output" and so on.
func OpenFailure(file, as string, errno syscall.Errno) string {
	return fmt.Sprintf("Failed to open '%s' as %s: %s (errno %d)", file, as, Strerror(errno), int(errno))
}

// Strerror returns the words of strerror(3), which begin with a capital letter,
// for texts that users know from stock starters.
func Strerror(errno syscall.Errno) string {
	s := errno.Error()
	return strings.ToUpper(s[:1]) + s[1:]
}
