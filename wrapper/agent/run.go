package agent

import (
	"time"

	"golang.org/x/sys/unix"

	"podstarter/payload"
	"podstarter/payload/procfamily"
)

// run is one start of a payload, from the request to the next one.
type run struct {
	spec   payload.Spec
	family procfamily.Family
	id     int64 // of the start request

	pid      int        // of the launcher, then the main process; 0 once reaped
	report   *launchEnd // nil while the launcher works
	launched bool       // the launcher became the payload
	settled  bool       // the end was reported

	started, ended time.Time
	status         unix.WaitStatus
	killed         string // why the wrapper killed it; "" if it did not
	base           *cgroupSample
	capture        *capture // nil: its output goes to files
	output         []byte   // valid once captured
	captured       bool
	peak           int64 // highest memory seen

	processes, threads int // at the latest look

	// Sums over all children reaped since the start.
	userCPU, systemCPU time.Duration
	maxRSS             int64 // bytes
}

// running tells whether the main process, or its launcher, is still there.
func (r *run) running() bool { return r != nil && !r.settled }

// addUsage counts a reaped child, its own waited-for children included
// (wait4(2), getrusage(2)).
func (r *run) addUsage(u *unix.Rusage) {
	r.userCPU += time.Duration(u.Utime.Nano())
	r.systemCPU += time.Duration(u.Stime.Nano())
	r.maxRSS = max(r.maxRSS, u.Maxrss*1024)
}

// largestResident is the largest resident set of a reaped process in bytes. It is 0 if none
// was larger than the launcher's: the kernel counts that to the main process (exec_mmap in
// fs/exec.c), and it says nothing about the payload.
func (r *run) largestResident() int64 {
	const slack = 512 << 10 // the launcher grows a little after its report
	if r.report == nil || r.maxRSS <= r.report.resident+slack {
		return 0
	}
	return r.maxRSS
}

// advance handles the launcher's report and the end of the process, which come in any
// order. The answer to the start request always precedes the exit.
func (a *agent) advance() {
	r := a.run
	if r.report == nil || r.settled {
		return
	}
	if r.report.failure != nil {
		if r.pid == 0 { // nothing is left behind
			r.report.failure = withoutThreads(r.report.failure, r.status)
			r.settled = true
			a.reply(payload.Message{ID: r.id, StartError: r.report.failure})
		}
		return
	}
	if !r.launched {
		r.launched, r.started = true, r.report.time
		a.reply(payload.Message{ID: r.id, Started: started(r)})
	}
	if r.pid == 0 && (r.capture == nil || r.captured) {
		r.settled = true
		a.exited(r)
	}
}

// started tells of a main process.
func started(r *run) *payload.Started {
	s := &payload.Started{Activation: r.spec.Activation, PID: r.report.pid, Time: r.started.UTC()}
	if r.report.onMachine > 0 {
		s.PID, s.OwnPID = r.report.onMachine, r.report.pid
	}
	return s
}

// withoutThreads recognises a launcher that was refused a thread: Go's runtime then exits
// with 2.
func withoutThreads(e *payload.StartError, status unix.WaitStatus) *payload.StartError {
	const noThread = 2
	if e.Stage != payload.StageFork || e.Errno != 0 || !status.Exited() || status.ExitStatus() != noThread {
		return e
	}
	return &payload.StartError{Stage: e.Stage, Errno: unix.EAGAIN, Detail: "the launcher got no thread; the pod has reached its limit of processes and threads"}
}

// exited records and reports the end of a main process.
func (a *agent) exited(r *run) {
	e := payload.Exit{
		Activation: r.spec.Activation,
		WaitStatus: int(r.status),
		Started:    r.started.UTC(),
		Ended:      r.ended.UTC(),
		UserCPU:    r.userCPU,
		SystemCPU:  r.systemCPU,
		MaxRSS:     r.largestResident(),
		Cgroup:     a.cgroupUsage(r),
		Output:     r.output,
	}
	if r.status.Signaled() && r.status.Signal() == unix.SIGKILL {
		e.Killed = r.killed
		if e.Killed == "" && a.leaving.Load() {
			e.Killed = payload.KilledLeaving
		}
		if e.Killed == "" && a.lost.Load() {
			e.Killed = payload.KilledLost
		}
	}
	if e.Cgroup != nil {
		e.OOMKills = max(e.Cgroup.OOMKills, 0)
	}
	if err := a.control.writeExit(e); err != nil {
		a.log.print("%v", err) // the starter still gets it
	}
	a.reply(payload.Message{Exit: &e})
}
