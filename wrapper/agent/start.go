package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/payload"
	"podstarter/payload/procfamily"
)

// start begins a run. The wrapper refuses here what it can check itself; the launcher does
// everything that involves the payload's user and files.
func (a *agent) start(r payload.Request) {
	files := a.conn.files.Take(r.Files)
	defer closeFiles(files)
	switch {
	case r.Spec == nil:
		a.refuse(r.ID, payload.CodeBadRequest, "a start request without a spec")
		return
	case r.Files != len(files) || r.Files != len(r.Spec.Passed):
		a.refuse(r.ID, payload.CodeBadRequest, fmt.Sprintf("%d of %d open files came for the standard files %.3q", len(files), r.Files, r.Spec.Passed))
		return
	case a.run.running():
		a.refuse(r.ID, payload.CodeStarted, "the payload of "+a.run.spec.Activation+" still runs")
		return
	case a.sweep != nil:
		a.refuse(r.ID, payload.CodeStarted, "a sweep is in progress")
		return
	}
	if failure := a.check(r.Spec); failure != nil {
		a.reply(payload.Message{ID: r.ID, StartError: failure})
		return
	}
	if failure := a.setLinks(r.Spec.Links); failure != nil {
		a.reply(payload.Message{ID: r.ID, StartError: failure})
		return
	}
	program := r.Spec.Program
	r.Spec.Program = nil // not kept for as long as it runs
	next := &run{id: r.ID, spec: *r.Spec, family: a.familyOf(r.Spec)}
	if next.spec.AsRoot {
		next.family = procfamily.OfDescendants(procfs, os.Getpid())
	}
	if a.run == nil {
		a.control.removeExits()
		if err := a.makeWay(&next.spec); err != nil {
			a.refuse(r.ID, payload.CodeNotEmpty, err.Error())
			return
		}
	}
	// Then it mounts: what an earlier payload left in shared memory is in the machine's, not in this payload's own.
	if failure := a.setMounts(r.Spec.Mounts, r.Spec.UID); failure != nil {
		a.reply(payload.Message{ID: r.ID, StartError: failure})
		return
	}
	a.cgroup.renewPeak()
	next.base = a.cgroup.sample()
	a.target.Store(&next.family)
	pid, report, err := a.launch(next, program, files, nil)
	if err != nil {
		a.reply(payload.Message{ID: r.ID, StartError: err})
		return
	}
	next.pid = pid
	a.run, a.clean = next, false
	a.last.uid, a.last.gid = next.spec.UID, next.spec.GID
	a.watchTasks(&next.spec)
	go func() { a.events <- event{launched: readReport(report, pid, next)} }()
}

// makeWay removes what an earlier payload left before the first payload of a connection
// starts. A wrapper that was killed, alone or with its container, did not sweep, and the
// leftovers belong to the next payload's user ID, even if its job is another user's.
func (a *agent) makeWay(s *payload.Spec) error {
	if a.uid != 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), makeWayTimeout)
	defer cancel()
	members, err := a.familyOf(s).Members()
	if err == nil && len(members) > 0 {
		a.log.print("an earlier payload of user %d is still there, killing it: %s", s.UID, procfamily.Describe(members))
		err = a.familyOf(s).Kill(ctx, a.killer)
	}
	if err == nil {
		err = removeLeftovers(s.UID, s.GID)
	}
	if err != nil {
		return fmt.Errorf("make way for the payload of user %d: %w", s.UID, err)
	}
	return nil
}

// makeWayTimeout bounds the killing of an earlier payload. A process that survives it hangs
// in the kernel, and the job should run elsewhere.
const makeWayTimeout = 5 * time.Second

// check refuses a payload as root, and a change of user between the runs of one connection,
// since a sweep would miss processes.
func (a *agent) check(s *payload.Spec) *payload.StartError {
	if err := s.Validate(); err != nil {
		return &payload.StartError{Stage: payload.StageSpec, Errno: unix.EINVAL, Detail: err.Error()}
	}
	refuse := func(format string, args ...any) *payload.StartError {
		return &payload.StartError{Stage: payload.StageIdentity, Errno: unix.EPERM, Detail: fmt.Sprintf(format, args...)}
	}
	switch {
	case s.Itself && !slices.Contains(ownPrograms, s.Args[0]):
		return refuse("the wrapper's program has no other use under the name %.40q", s.Args[0])
	case a.uid == 0 && (s.UID == 0 || s.GID == 0):
		return refuse("a payload may not run as user %d, group %d", s.UID, s.GID)
	case a.pilot != nil && (s.GID == a.pilot.group || slices.Contains(s.Groups, a.pilot.group)):
		return refuse("a payload may not be in group %d, which may enter the control directory", a.pilot.group)
	case a.uid != 0 && (s.UID != a.uid || s.GID != os.Getegid()):
		return refuse("a wrapper without root can start payloads as user %d, group %d only, not as %d, %d", a.uid, os.Getegid(), s.UID, s.GID)
	case s.AsRoot && (a.uid != 0 || a.companion || a.pilot != nil):
		return refuse("a program can run as container-root only in a container of its own, for a pilot that is root, too")
	case (s.AsRoot || a.run != nil && a.run.spec.AsRoot) && a.run != nil && !a.clean:
		return refuse("nothing runs as container-root beside a payload; sweep first")
	case a.uid == 0 && a.run != nil && a.run.spec.UID != s.UID:
		return refuse("the payloads of one connection must have one user; this one had %d", a.run.spec.UID)
	}
	return nil
}

func (a *agent) familyOf(s *payload.Spec) procfamily.Family {
	if a.uid == 0 {
		return procfamily.OfUser(procfs, s.UID)
	}
	return procfamily.OfDescendants(procfs, os.Getpid())
}

// launch starts the launcher, which gets the job through an anonymous file and
// reports through a pipe that closes when it becomes the payload.
func (a *agent) launch(r *run, program []byte, passed []*os.File, e *payload.Exec) (pid int, report *os.File, failure *payload.StartError) {
	s := &r.spec
	fail := func(what string, err error) (int, *os.File, *payload.StartError) {
		var errno syscall.Errno
		_ = errors.As(err, &errno)
		return 0, nil, &payload.StartError{Stage: payload.StageFork, Errno: errno, Detail: what + ": " + err.Error()}
	}
	j := job{Spec: *s, Parent: os.Getpid(), SwitchUser: a.uid == 0, HasProgram: len(program) > 0 || s.Itself}
	if e != nil {
		j.Exec = &payload.Exec{Others: e.Others, Terminal: e.Terminal}
	}
	if s.ImageEnv {
		j.Spec.Env = mergeEnvironment(hide(a.imageEnv, s.HideEnv), s.Env)
	} else {
		j.Spec.Env = mergeEnvironment(nil, s.Env)
	}
	if a.machine != nil {
		j.Machine = passedFD + len(passed)
		if e != nil && hasProgram(e, passed) {
			j.Machine--
		}
	}
	data, err := json.Marshal(j)
	if err != nil {
		return fail("write down the job", err)
	}
	spec, err := anonymousFile(data)
	if err != nil {
		return fail("pass on the job", err)
	}
	defer spec.Close()
	files := []uintptr{a.null.Fd(), a.null.Fd(), uintptr(unix.Stderr), specFD: spec.Fd(), reportFD: noFile, programFD: noFile, outputFD: noFile}
	if s.Itself {
		f, err := os.Open(selfExe)
		if err != nil {
			return fail("open the wrapper's own program", err)
		}
		defer f.Close()
		files[programFD] = f.Fd()
	}
	if len(program) > 0 {
		f, err := programFile(program)
		if err != nil {
			return fail("pass on the program", err)
		}
		defer f.Close()
		files[programFD] = f.Fd()
	}
	var output *os.File
	if s.Capture > 0 {
		var err error
		if r.capture, output, err = newCapture(s.Capture); err != nil {
			return fail("make a pipe for the output", err)
		}
		defer output.Close()
		files[outputFD] = output.Fd()
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return fail("make a pipe", err)
	}
	defer func() { _ = unix.Close(pipe[1]) }()
	report = os.NewFile(uintptr(pipe[0]), "report")
	files[reportFD] = uintptr(pipe[1])
	if e != nil && hasProgram(e, passed) {
		files[programFD], passed = passed[0].Fd(), passed[1:]
	}
	for _, f := range passed {
		files = append(files, f.Fd())
	}
	if a.machine != nil {
		files = append(files, a.machine.Fd())
	}
	// Not os.StartProcess: it would wait for its child, which is the loop's.
	pid, err = syscall.ForkExec(selfExe, []string{launcherName}, &syscall.ProcAttr{
		Dir:   "/",
		Env:   launcherEnv,
		Files: files,
		Sys:   a.group.attributes(),
	})
	if err != nil {
		report.Close()
		r.capture.abandon()
		return fail("start the launcher", err)
	}
	if r.capture != nil {
		go func() { a.events <- event{captured: &captureEnd{run: r, output: r.capture.read()}} }()
	}
	return pid, report, nil
}

// noFile marks files that the launcher does not get (syscall.ProcAttr).
const noFile = ^uintptr(0)

// launcherEnv keeps the launcher's runtime from starting threads and garbage collections
// that it does not need.
var launcherEnv = []string{"GOMAXPROCS=1", "GOGC=off"}

func anonymousFile(data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("job", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "job")
	_, err = f.Write(data)
	if err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// launchEnd is the outcome of a launcher.
type launchEnd struct {
	run       *run
	execution *execution // in place of run
	pid       int
	// ready has the time of execve, and the launcher's own peak of memory: the kernel counts that to the
	// process that it became (exec_mmap in fs/exec.c).
	ready
	failure *payload.StartError // nil: it became the payload
}

// maxReport bounds a launcher's report in bytes.
const maxReport = 64 << 10

// readReport reads a launcher's report to its end, which comes with execve(2)
// or with the launcher's own end.
func readReport(pipe *os.File, pid int, r *run) *launchEnd {
	defer pipe.Close()
	data, err := io.ReadAll(io.LimitReader(pipe, maxReport))
	end := &launchEnd{run: r, pid: pid}
	if err != nil {
		end.failure = &payload.StartError{Stage: payload.StageFork, Detail: "read the launcher's report: " + err.Error()}
		return end
	}
	end.ready, end.failure = decodeReport(data)
	return end
}

// launchEnded records a launcher's report.
func (a *agent) launchEnded(e *launchEnd) {
	if x := e.execution; x != nil {
		x.report = e
		a.advanceExec(x)
		return
	}
	e.run.report = e
	if e.run == a.run {
		a.advance()
	}
	freeMemory()
}

// freeMemory gives the memory of a large job description back to the job.
func freeMemory() { debug.FreeOSMemory() }
