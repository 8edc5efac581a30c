package agent

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"podstarter/payload"
	"podstarter/payload/nonetwork"
)

// launch runs the launcher, a process of its own between fork and execve, since Go cannot
// run code between the two. It takes on the payload's properties step by step and then
// executes the payload, unless this is a rehearsal.
//
// Only this thread has the payload's credentials; execve(2) ends all others.
func launch() int {
	runtime.LockOSThread()
	unix.CloseOnExec(specFD)
	unix.CloseOnExec(reportFD)
	unix.CloseOnExec(outputFD)
	r := report{fd: reportFD}
	j, err := readJob()
	if err != nil {
		r.failed(payload.StageSpec, "", unix.EINVAL, func() (string, string) { return "", err.Error() })
		return exitSetup
	}
	if j.Machine > 0 {
		r.onMachine = numberIn(j.Machine)
		_ = unix.Close(j.Machine)
	}
	s := &j.Spec
	for i := range s.Passed {
		unix.CloseOnExec(passedFD + i)
	}
	if failure := prepare(&j); failure != nil {
		r.failed(failure.stage, failure.path, errnoOf(failure.err), failure.explain)
		return exitSetup
	}
	if s.Rehearse {
		r.ready()
		return 0
	}
	if j.Exec != nil {
		unix.CloseOnExec(programFD)
		unix.CloseOnExec(passedFD)
	}
	if j.HasProgram {
		s.Path, s.SearchPath = programPath, false
	}
	path, err := become(&j, r)
	r.failed(payload.StageExec, path, errnoOf(err), func() (string, string) { return explainExec(path, errnoOf(err)) })
	return exitSetup
}

// stageError is a stage that failed.
type stageError struct {
	stage, path string
	err         error
	inWords     bool // err says more than its errno
}

// explain gives the report's detail.
func (e *stageError) explain() (interpreter, detail string) {
	if e.inWords {
		detail = e.err.Error()
	}
	return "", detail
}

func readJob() (job, error) {
	f := os.NewFile(specFD, "job")
	defer f.Close()
	var j job
	data, err := io.ReadAll(f)
	if err == nil {
		err = json.Unmarshal(data, &j)
	}
	return j, err
}

// prepare does everything except execve and the resource limits, under which this program
// might not be able to work.
func prepare(j *job) *stageError {
	if failure := takeOn(j); failure != nil {
		return failure
	}
	// The last step: what the launcher opens for the program, the program could open.
	if j.Spec.NoNetwork {
		if err := nonetwork.Apply(); err != nil {
			return &stageError{stage: payload.StageNetwork, err: err, inWords: true}
		}
	}
	return nil
}

// takeOn makes the process the payload's user, in its directory and with its files.
func takeOn(j *job) *stageError {
	s := &j.Spec
	// Best effort: without it the kernel may choose the wrapper before the job
	// when memory runs out.
	_ = os.WriteFile(procfs+"/self/oom_score_adj", strconv.AppendInt(nil, payload.OOMScoreAdj, 10), 0)
	restoreFileLimit()
	raiseHardLimits(s.Limits)
	setCPUs(s.CPUs)
	if s.Nice != 0 {
		if err := addNice(s.Nice); err != nil {
			return &stageError{stage: payload.StageNice, err: err}
		}
	}
	if err := takeIdentity(s, j.SwitchUser); err != nil {
		return &stageError{stage: payload.StageIdentity, err: err, inWords: true}
	}
	// The change of user cleared the parent death signal that ForkExec set.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return &stageError{stage: payload.StageIdentity, err: err}
	}
	if os.Getppid() != j.Parent {
		os.Exit(exitSetup)
	}
	unix.Umask(s.Umask)
	if err := unix.Chdir(s.Dir); err != nil {
		return &stageError{stage: payload.StageChdir, path: s.Dir, err: err}
	}
	if j.Exec != nil && j.Exec.Terminal != nil {
		if err := openTerminal(j.Exec.Terminal); err != nil {
			return &stageError{stage: payload.StageTerminal, err: err, inWords: true}
		}
		return nil
	}
	return openStdio(s)
}

// programPath names the program that came with the request. It stays open across execve: a
// script's interpreter opens it by this name.
const programPath = procfs + "/self/fd/5"

// addNice changes the nice value of this thread. The system call returns 20
// less the value (getpriority(2)).
func addNice(increment int) error {
	value, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return err
	}
	return unix.Setpriority(unix.PRIO_PROCESS, 0, 20-value+increment)
}

// setCPUs confines this thread, and so the payload, to some CPUs. It is best effort, as in
// condor_starter: if the container has other CPUs (sched_setaffinity(2), EINVAL), the job
// runs on those.
func setCPUs(cpus []int) {
	if len(cpus) == 0 {
		return
	}
	var set unix.CPUSet
	for _, n := range cpus {
		set.Set(n)
	}
	_ = unix.SchedSetaffinity(0, &set)
}

// openStdio opens the payload's standard files as the payload's user in its working
// directory, except those that came open. It follows symbolic links: they reach only what
// the payload itself could open.
func openStdio(s *payload.Spec) *stageError {
	out := unix.O_WRONLY | unix.O_CREAT | unix.O_TRUNC
	if s.Append {
		out = unix.O_WRONLY | unix.O_CREAT | unix.O_APPEND
	}
	files := []struct {
		name, stage, path string
		target, flags     int
	}{
		{payload.Stdin, payload.StageStdin, s.Stdin, unix.Stdin, unix.O_RDONLY},
		{payload.Stdout, payload.StageStdout, s.Stdout, unix.Stdout, out},
		{payload.Stderr, payload.StageStderr, s.Stderr, unix.Stderr, out},
	}
	for _, f := range files {
		var err error
		switch at := slices.Index(s.Passed, f.name); {
		case at >= 0:
			err = unix.Dup3(passedFD+at, f.target, 0)
		case s.Capture > 0 && f.name != payload.Stdin:
			err = unix.Dup3(outputFD, f.target, 0)
		case f.name == payload.Stderr && f.path != "" && f.path == s.Stdout:
			// One open file, so that neither overwrites the other.
			err = unix.Dup3(unix.Stdout, unix.Stderr, 0)
		case s.Rehearse && isFIFO(f.path):
			// Its peer would see it come and go.
		default:
			err = openOnto(f.target, f.path, f.flags)
		}
		if err != nil {
			return &stageError{stage: f.stage, path: f.path, err: err}
		}
	}
	return nil
}

func isFIFO(path string) bool {
	var st unix.Stat_t
	return unix.Stat(path, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFIFO
}

const outputMode = 0o666 // less the umask, as condor_starter does it

func openOnto(target int, path string, flags int) error {
	if path == "" {
		path = os.DevNull
	}
	// O_NONBLOCK: a FIFO without a peer must not delay the start.
	flags |= unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC
	fd, err := unix.Open(path, flags, outputMode)
	if err != nil && flags&unix.O_TRUNC != 0 && !errors.Is(err, unix.ENOENT) {
		// As condor_starter does: a file that cannot be truncated may still be
		// writable.
		fd, err = unix.Open(path, flags&^unix.O_TRUNC, outputMode)
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return unix.EISDIR
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		return err
	}
	return unix.Dup3(fd, target, 0)
}

func errnoOf(err error) unix.Errno {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return unix.EIO
}
