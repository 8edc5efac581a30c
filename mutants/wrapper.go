package main

const agentPackage = "wrapper/agent"

// agentTests are some of the wrapper's tests.
func agentTests(run string) []tests { return []tests{{agentPackage, run}} }

// Mistakes in the wrapper.
var wrapperMutants = []mutant{
	{
		Name:  "ignored signals are not reset",
		File:  "wrapper/agent/become.go",
		Old:   `if errno == 0 && now.handler == ignoreSignal {`,
		New:   `if errno == 0 && now.handler == ignoreSignal && false {`,
		Tests: agentTests("TestIgnoredSignals"),
	},
	{
		Name:  "the program search stops at a file that may not be executed",
		File:  "wrapper/agent/become.go",
		Old:   "\t\tcase unix.EACCES:\n\t\t\tif failure",
		New:   "\t\tcase unix.EACCES:\n\t\t\treturn names[i], errno\n\t\t\tif failure",
		Tests: agentTests("TestSearchGoesOn"),
	},
	{
		Name:  "a soft limit may be above the hard one",
		File:  "wrapper/agent/become.go",
		Old:   `unix.Rlimit{Cur: min(l.Soft, hard), Max: hard}`,
		New:   `unix.Rlimit{Cur: l.Soft, Max: hard}`,
		Tests: agentTests("TestLimitsThatTheKernelTakes"),
	},
	{
		Name:  "setgroups is dropped",
		File:  "wrapper/agent/identity.go",
		Old:   `unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(first), 0); errno != 0 {`,
		New:   `unix.RawSyscall(unix.SYS_GETPID, uintptr(len(groups)), uintptr(first), 0); errno != 0 {`,
		Tests: agentTests("TestGroupsAreLeft"),
	},
	{
		Name:  "setgroups is dropped for programs of container-root",
		File:  "wrapper/agent/identity.go",
		Old:   `unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {`,
		New:   `unix.RawSyscall(unix.SYS_GETPID, 0, 0, 0); errno != 0 {`,
		Tests: agentTests("TestGroupsAreLeft"),
	},
	{
		Name:  "setgroups is dropped where leftovers are removed",
		File:  "wrapper/agent/leftovers.go",
		Old:   "\t\t{\"setgroups\", unix.SYS_SETGROUPS, 0, 0, 0},\n",
		New:   "",
		Tests: agentTests("TestGroupsAreLeft"),
	},
	{
		Name:  "no_new_privs is not set",
		File:  "wrapper/agent/identity.go",
		Old:   `unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)`,
		New:   `unix.Prctl(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)`,
		Tests: agentTests("TestFacts"),
	},
	{
		Name:  "the identity is not checked when the kernel answers",
		File:  "wrapper/agent/identity.go",
		Old:   `if errUID != 0 || errGID != 0 || ids`,
		New:   `if (errUID != 0 || errGID != 0) && ids`,
		Tests: agentTests("TestIdentityIsChecked"),
	},
	{
		Name:  "a launcher goes on without its wrapper",
		File:  "wrapper/agent/launch.go",
		Old:   `if os.Getppid() != j.Parent {`,
		New:   `if os.Getppid() != j.Parent && false {`,
		Tests: agentTests("TestLauncherWithoutItsWrapper"),
	},
	{
		Name:  "passed files stay open in the payload",
		File:  "wrapper/agent/launch.go",
		Old:   "\t\tunix.CloseOnExec(passedFD + i)\n",
		New:   "\t\tunix.CloseOnExec(passedFD + i + 1)\n",
		Tests: agentTests("TestPassedFilesAreAllThatIsPassed"),
	},
	{
		Name:  "standard files stay non-blocking",
		File:  "wrapper/agent/launch.go",
		Old:   `if err := unix.SetNonblock(fd, false); err != nil {`,
		New:   `if err := unix.SetNonblock(fd, true); err != nil {`,
		Tests: agentTests("TestStandardFilesBlock"),
	},
	{
		Name:  "stderr truncates what stdout has in the same file",
		File:  "wrapper/agent/launch.go",
		Old:   `case f.name == payload.Stderr && f.path != "" && f.path == s.Stdout:`,
		New:   `case f.name == payload.Stderr && f.path == "" && f.path == s.Stdout:`,
		Tests: agentTests("TestStdio"),
	},
	{
		Name: "the exit record follows links",
		File: "internal/atomicfile/atomicfile.go",
		Old: `	if o.Temporary != "" {
		_ = unix.Unlinkat(dir, temporary, 0) // of a caller that died; if it stays, the next step fails
	}
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
`,
		New: `	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_TRUNC | unix.O_CLOEXEC
`,
		Tests: append(agentTests("TestExitRecordFollowsNoLink"), tests{"internal/atomicfile", "TestReplace"}),
	},
	{
		Name:  "the control directory may be a link",
		File:  "wrapper/agent/control.go",
		Old:   `unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_RDONLY`,
		New:   `unix.O_DIRECTORY|unix.O_RDONLY`,
		Tests: agentTests("TestControlDirectoryIsNoLink"),
	},
	{
		Name:  "records of earlier runs are left",
		File:  "wrapper/agent/control.go",
		Old:   "\tc.removeMatching(\"exit.\")\n",
		New:   "",
		Tests: agentTests("TestRecordsOfEarlierRunsGo"),
	},
	{
		Name:  "last words follow links",
		File:  "wrapper/agent/lastwords.go",
		Old:   `unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK`,
		New:   `unix.O_WRONLY|unix.O_NONBLOCK`,
		Tests: agentTests("TestLastWords"),
	},
	{
		Name:  "the wrapper serves every user",
		File:  "wrapper/agent/conn.go",
		Old:   `return uid == 0 || uid == os.Geteuid()`,
		New:   `return uid >= 0 || uid == os.Geteuid()`,
		Tests: agentTests("TestWhoIsServed"),
	},
	{
		Name:  "files that came with a lost connection are not closed",
		File:  "wrapper/agent/conn.go",
		Old:   "\t_ = c.sock.Close()\n\tc.files.Close()\n",
		New:   "\t_ = c.sock.Close()\n",
		Tests: agentTests("TestFilesOfALostConnection"),
	},
	{
		Name:  "the dead-man's switch is off",
		File:  "wrapper/agent/loop.go",
		Old:   `a.beginSweep(0, payload.KilledLost)`,
		New:   `_ = payload.KilledLost; a.free()`,
		Tests: agentTests("TestConnectionLost$|TestStopAndLost"),
	},
	{
		Name:  "the latest reason for the end replaces the first",
		File:  "wrapper/agent/sweep.go",
		Old:   `if a.run.running() && a.run.killed == "" {`,
		New:   `if a.run.running() {`,
		Tests: agentTests("TestFirstReasonStays"),
	},
	{
		Name:  "a sweep does not wait for processes beside the payload",
		File:  "wrapper/agent/sweep.go",
		Old:   `!a.run.running() && len(a.executions) == 0 {`,
		New:   `!a.run.running() {`,
		Tests: agentTests("TestSweepWaitsForExecutions"),
	},
	{
		Name:  "a container that could not be cleaned counts as clean",
		File:  "wrapper/agent/sweep.go",
		Old:   `a.clean, a.soiled = failure == "", failure`,
		New:   `a.clean, a.soiled = true, ""`,
		Tests: agentTests("TestUncleanContainerIsRemembered"),
	},
	{
		Name:  "one process too many runs beside the payload",
		File:  "wrapper/agent/exec.go",
		Old:   `case len(a.executions) >= payload.MaxExecutions:`,
		New:   `case len(a.executions) > payload.MaxExecutions:`,
		Tests: agentTests("TestExecutionsAreBounded"),
	},
	{
		Name:  "a process beside the payload may have other groups",
		File:  "wrapper/agent/exec.go",
		Old:   ` || !slices.Equal(e.Spec.Groups, is.Groups) {`,
		New:   ` {`,
		Tests: agentTests("TestExecutionHasThePayloadsGroups"),
	},
	{
		Name:  "a payload may be in the pilot's group",
		File:  "wrapper/agent/start.go",
		Old:   ` || slices.Contains(s.Groups, a.pilot.group)):`,
		New:   ` || slices.Contains(s.Groups, a.pilot.uid)):`,
		Tests: agentTests("TestPilotsGroupIsTheirs"),
	},
	{
		Name:  "what is in the pipe at the end of the program is lost",
		File:  "wrapper/agent/capture.go",
		Old:   "\t\tif errors.Is(err, os.ErrDeadlineExceeded) {\n\t\t\tbreak\n",
		New:   "\t\tif errors.Is(err, os.ErrDeadlineExceeded) {\n\t\t\treturn kept\n",
		Tests: agentTests("TestCaptureAfterTheEnd"),
	},
	{
		Name:  "the payload can change the program that it was passed",
		File:  "wrapper/agent/capture.go",
		Old:   `unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals)`,
		New:   `unix.FcntlInt(f.Fd(), unix.F_GET_SEALS, seals)`,
		Tests: agentTests("TestProgramCannotBeChanged"),
	},
	{
		Name:  "another's link is removed",
		File:  "wrapper/agent/link.go",
		Old:   `err != nil || string(buf[:n]) != l.to {`,
		New:   `err != nil || n < 0 {`,
		Tests: agentTests("TestLink$"),
	},
	{
		Name:  "a link is made through a link of the image",
		File:  "wrapper/agent/link.go",
		Old:   `unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS |`,
		New:   `unix.RESOLVE_BENEATH |`,
		Tests: agentTests("TestLink$"),
	},
	{
		Name:  "shared memory that only was made by the user is left",
		File:  "wrapper/agent/sysv.go",
		Old:   `fields[owner] != user && fields[creator] != user {`,
		New:   `fields[owner] != user {`,
		Tests: agentTests("TestObjectsOf"),
	},
	{
		Name:  "usage of a second start includes the first",
		File:  "wrapper/agent/cgroup.go",
		Old:   `return max(now-max(base, 0), 0)`,
		New:   `return max(now, 0)`,
		Tests: agentTests("TestCgroup"),
	},
	{
		Name:  "a launcher that was refused a thread is a riddle",
		File:  "wrapper/agent/run.go",
		Old:   `|| status.ExitStatus() != noThread {`,
		New:   `|| status.ExitStatus() == noThread {`,
		Tests: agentTests("TestLauncherWithoutThreads"),
	},
}

func payloadTests(run string) []tests { return []tests{{"payload", run}} }
func familyTests(run string) []tests  { return []tests{{"payload/procfamily", run}} }

// Mistakes in what the starter and the wrapper share.
var payloadMutants = []mutant{
	{
		Name:  "a process is signalled that only has the number of another",
		File:  "payload/procfamily/signal.go",
		Old:   `if now.Start != p.Start {`,
		New:   `if now.Start < p.Start {`,
		Tests: familyTests("TestSignalIsNotForTheNext"),
	},
	{
		Name:  "root's processes may be signalled as a payload's",
		File:  "payload/procfamily/killer.go",
		Old:   `case r.uid <= 0 || r.uid == os.Getuid()`,
		New:   `case r.uid < 0 || r.uid == os.Getuid() && r.uid != 0`,
		Tests: familyTests("TestKillerTakesOnPayloadsOnly"),
	},
	{
		Name:  "one signal may go to all processes",
		File:  "payload/procfamily/killer.go",
		Old:   `if pid <= 0 {`,
		New:   `if pid == 0 {`,
		Tests: familyTests("TestKillerTakesOnPayloadsOnly"),
	},
	{
		Name:  "the starter believes any listener",
		File:  "payload/dial.go",
		Old:   `if cred.Uid != 0 && int(cred.Uid) != os.Geteuid() {`,
		New:   `if cred.Uid != 0 && int(cred.Uid) != os.Geteuid() && false {`,
		Tests: payloadTests("TestDialTrustsNoOther"),
	},
	{
		Name:  "an exit of another activation ends the wait",
		File:  "payload/client_io.go",
		Old:   `if c.exited != nil && m.Exit.Activation == c.activation {`,
		New:   `if c.exited != nil {`,
		Tests: payloadTests("TestExitOfAnother"),
	},
	{
		Name:  "a connection that failed stays open",
		File:  "payload/client_io.go",
		Old:   "\tclose(c.lost)\n\t_ = c.conn.Close()",
		New:   "\tclose(c.lost)\n\t_ = c.conn.CloseRead()",
		Tests: payloadTests("TestFailureHangsUp"),
	},
	{
		Name:  "a sweep counts for what was started during it",
		File:  "payload/client.go",
		Old:   `c.swept = max(c.swept, asked)`,
		New:   `c.swept = max(c.swept, c.starts, asked)`,
		Tests: payloadTests("TestSweepIsNotForWhatComesLater"),
	},
	{
		Name:  "unknown fields are passed over",
		File:  "payload/wire.go",
		Old:   "\td.DisallowUnknownFields()\n",
		New:   "",
		Tests: payloadTests("TestStrictDecoding"),
	},
	{
		Name:  "a line may be one byte too long",
		File:  "payload/wire.go",
		Old:   `if len(line)+len(part) > l.max {`,
		New:   `if len(line)+len(part) > l.max+1 {`,
		Tests: payloadTests("TestLineReader"),
	},
	{
		Name:  "the starter follows a link to an exit record",
		File:  "payload/record.go",
		Old:   `os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK`,
		New:   `os.O_RDONLY|unix.O_NONBLOCK`,
		Tests: payloadTests("TestReadExit"),
	},
	{
		Name:  "files that come too late stay open",
		File:  "payload/fds.go",
		Old:   "\t\tif r.ended {\n\t\t\troom = 0\n",
		New:   "\t\tif r.ended {\n\t\t\troom = r.max\n",
		Tests: payloadTests("TestLateFiles"),
	},
}

func chirpTests(run string) []tests { return []tests{{"condor/chirp", run}} }

// Mistakes in chirp, which serves the payload.
var chirpMutants = []mutant{
	{
		Name:  "chirp's flag to append is wrong",
		File:  "condor/chirp/fileverbs.go",
		Old:   `'a': 0x1000}`,
		New:   `'a': 0x0800}`,
		Tests: chirpTests("TestOpenFlags"),
	},
	{
		Name:  "chirp opens for reading what is to be read and written",
		File:  "condor/chirp/fileverbs.go",
		Old:   `flags = readWrite`,
		New:   `flags = readOnly + readWrite&^readWrite`,
		Tests: chirpTests("TestOpenFlags"),
	},
	{
		Name:  "a job uses files that the shadow has open for itself",
		File:  "condor/chirp/verbs.go",
		Old:   `if kinds[0] == 'i' && !x.isOpen(a[0].n, &r) {`,
		New:   `if kinds[0] == 'i' && !x.isOpen(a[0].n, &r) && a[0].n < 0 {`,
		Tests: chirpTests("TestRequests|TestClosedFile"),
	},
	{
		Name:  "files stay open over the loss of the shadow",
		File:  "condor/chirp/verbs.go",
		Old:   "\t\tclear(x.opened)\n",
		New:   "",
		Tests: chirpTests("TestShadowLost"),
	},
	{
		Name:  "a closed file can be used",
		File:  "condor/chirp/fileverbs.go",
		Old:   "\tdelete(x.opened, a[0].n)\n",
		New:   "",
		Tests: chirpTests("TestRequests|TestClosedFile"),
	},
	{
		Name:  "the largest request is refused",
		File:  "condor/chirp/fileverbs.go",
		Old:   `case a[1].n < 0 || a[1].n > shadow.MaxFileBytes:`,
		New:   `case a[1].n < 0 || a[1].n >= shadow.MaxFileBytes:`,
		Tests: chirpTests("TestLargestRequest"),
	},
	{
		Name:  "a file that was put is not closed",
		File:  "condor/chirp/fileverbs.go",
		Old:   "\tdefer x.ask(shadow.FileRequest{Call: shadow.FileClose, Fields: fd, Origin: opened.Origin})\n",
		New:   "",
		Tests: chirpTests("TestPutFile|TestPutThenAnotherClient"),
	},
	{
		Name:  "two clients ask the shadow at once",
		File:  "condor/chirp/server.go",
		Old:   `make(chan struct{}, 1),`,
		New:   `make(chan struct{}, 2),`,
		Tests: chirpTests("TestOneRequestAtATime"),
	},
	{
		Name:  "the beginning of the cookie is enough",
		File:  "condor/chirp/session.go",
		Old:   `subtle.ConstantTimeCompare([]byte(words[1]), []byte(x.o.Cookie)) == 1:`,
		New:   `subtle.ConstantTimeCompare([]byte(words[1]), []byte(x.o.Cookie)[:min(len(words[1]), len(x.o.Cookie))]) == 1:`,
		Tests: chirpTests("TestCookieIsAskedForInFull"),
	},
	{
		Name:  "the job's own clients give way to strangers",
		File:  "condor/chirp/strangers.go",
		Old:   `func(one *stranger) bool { return !one.own }`,
		New:   `func(one *stranger) bool { return one.own }`,
		Tests: chirpTests("TestWhoGivesWay"),
	},
	{
		Name:  "one delayed attribute too many is set",
		File:  "condor/chirp/delayed.go",
		Old:   `len(d.names) >= d.most {`,
		New:   `len(d.names) > d.most {`,
		Tests: chirpTests("TestDelayed"),
	},
	{
		Name:  "an update that did not arrive replaces what was set since",
		File:  "condor/chirp/delayed.go",
		Old:   `] && !d.pending.Has(name) {`,
		New:   `] {`,
		Tests: chirpTests("TestDelayed"),
	},
	{
		Name:  "a client that came at the end is served",
		File:  "condor/chirp/server.go",
		Old:   "\tif s.finished {\n\t\treturn false\n\t}\n\ts.conns[conn] = true",
		New:   "\ts.conns[conn] = true",
		Tests: chirpTests("TestLateClient"),
	},
}
