package agent

import (
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"podstarter/payload"
)

// execution is a process beside the main process of the run, usually a session of the
// payload's owner.
type execution struct {
	id     int64 // of the request
	pid    int
	report *launchEnd // nil while its launcher works

	launched bool // the launcher became the process
	gone     bool // it has been reaped
	status   unix.WaitStatus
}

// exec starts one. It has the run's identity, so a sweep of the run kills it too.
func (a *agent) exec(r payload.Request) {
	files := a.conn.files.Take(r.Files)
	defer closeFiles(files)
	switch {
	case r.Exec == nil:
		a.refuse(r.ID, payload.CodeBadRequest, "an exec request without an exec")
		return
	case r.Files < 0 || len(files) != r.Files:
		a.refuse(r.ID, payload.CodeBadRequest, fmt.Sprintf("an exec request announces %d open files that did not come", r.Files))
		return
	case a.run == nil || !a.run.launched || a.run.spec.AsRoot || a.clean || a.sweep != nil:
		a.refuse(r.ID, payload.CodeNoPayload, "no payload is there to start a process beside")
		return
	case len(a.executions) >= payload.MaxExecutions:
		a.refuse(r.ID, payload.CodeFailed, fmt.Sprintf("%d processes beside the payload have not ended, and no more are allowed", len(a.executions)))
		return
	}
	if failure := a.checkExec(r.Exec, len(files)); failure != nil {
		a.reply(payload.Message{ID: r.ID, StartError: failure})
		return
	}
	spec := r.Exec.Spec
	spec.NoNetwork = spec.NoNetwork || a.run.spec.NoNetwork // what has none must not get it from beside
	if r.Exec.Terminal == nil {
		spec.Passed = []string{payload.Stdin, payload.Stdout, payload.Stderr}
	}
	pid, report, failure := a.launch(&run{spec: spec}, nil, files, r.Exec)
	if failure != nil {
		a.reply(payload.Message{ID: r.ID, StartError: failure})
		return
	}
	x := &execution{id: r.ID, pid: pid}
	a.executions[x.id] = x
	go func() {
		end := readReport(report, pid, nil)
		end.execution = x
		a.events <- event{launched: end}
	}()
}

// checkExec does what check does, and also demands the payload's exact user and groups.
func (a *agent) checkExec(e *payload.Exec, files int) *payload.StartError {
	if err := e.Validate(); err != nil {
		return &payload.StartError{Stage: payload.StageSpec, Errno: unix.EINVAL, Detail: err.Error()}
	}
	if failure := a.check(e.Checked()); failure != nil {
		return failure
	}
	is := &a.run.spec
	if e.Spec.UID != is.UID || e.Spec.GID != is.GID || !slices.Equal(e.Spec.Groups, is.Groups) {
		return &payload.StartError{Stage: payload.StageIdentity, Errno: unix.EPERM,
			Detail: "a process beside the payload must have its user and groups"}
	}
	want := stdioFiles
	if e.Terminal != nil {
		want = 1
	}
	if files != want && files != want+1 || files == want && needsProgram(e) {
		return &payload.StartError{Stage: payload.StageSpec, Errno: unix.EBADF,
			Detail: fmt.Sprintf("%d open files came for the process", files)}
	}
	return nil
}

const stdioFiles = 3

// needsProgram tells whether one of the attempts is the program that came with the request.
func needsProgram(e *payload.Exec) bool {
	return e.Spec.Path == "" || slices.ContainsFunc(e.Others, func(a payload.Attempt) bool { return a.Path == "" })
}

// hasProgram tells whether the first file is a program.
func hasProgram(e *payload.Exec, files []*os.File) bool {
	if e.Terminal != nil {
		return len(files) > 1
	}
	return len(files) > stdioFiles
}

// advanceExec handles the launcher's report and the end of an execution.
func (a *agent) advanceExec(x *execution) {
	if x.report == nil {
		return
	}
	switch {
	case x.report.failure != nil:
		if x.gone {
			delete(a.executions, x.id)
			a.reply(payload.Message{ID: x.id, StartError: withoutThreads(x.report.failure, x.status)})
		}
		return
	case !x.launched:
		x.launched = true
		a.reply(payload.Message{ID: x.id, Executing: &payload.Executing{PID: x.pid, Time: x.report.time.UTC()}})
	}
	if x.gone {
		delete(a.executions, x.id)
		a.reply(payload.Message{ExecExit: &payload.ExecExit{Exec: x.id, WaitStatus: int(x.status)}})
	}
}

// reapedExec records the end of a child that is an execution.
func (a *agent) reapedExec(pid int, status unix.WaitStatus) {
	for _, x := range a.executions {
		if x.pid == pid && !x.gone {
			x.gone, x.status = true, status
			a.advanceExec(x)
			return
		}
	}
}

// executionOf gives the process ID of the living execution that a request started; 0 if
// none.
func (a *agent) executionOf(id int64) (pid int) {
	if x := a.executions[id]; x != nil && x.launched && !x.gone {
		return x.pid
	}
	return 0
}
