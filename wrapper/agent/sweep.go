package agent

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/payload"
	"podstarter/payload/procfamily"
)

// sweep kills everything, in steps, so that the loop can go on serving.
type sweep struct {
	waiting  []int64 // requests to answer
	deadline time.Time
	timer    *time.Timer
	pause    time.Duration
}

const (
	sweepFirstPause = time.Millisecond
	sweepLastPause  = 100 * time.Millisecond
	// sweepTimeout is how long a requested sweep may take before it is reported as failed.
	// The sweep after the loss of a connection has no limit: better an unusable container
	// than two jobs in it.
	sweepTimeout = 30 * time.Second
)

// beginSweep starts a sweep, or joins the one in progress. id is 0 when no
// request asked for it.
func (a *agent) beginSweep(id int64, reason string) {
	if a.run.running() && a.run.killed == "" {
		a.run.killed = reason
	}
	a.stopLook("a sweep comes first")
	if a.sweep == nil {
		a.sweep = &sweep{timer: time.NewTimer(0), pause: sweepFirstPause}
		<-a.sweep.timer.C
	}
	if id != 0 {
		a.sweep.waiting = append(a.sweep.waiting, id)
		a.sweep.deadline = time.Now().Add(sweepTimeout)
	}
	a.sweepStep()
}

// sweepStep kills, reaps and looks once; if something is left, it sets the time of the next
// step.
func (a *agent) sweepStep() {
	s := a.sweep
	left, err := a.killOnce()
	if err == nil && len(left) == 0 && !a.run.running() && len(a.executions) == 0 {
		a.endSweep("")
		return
	}
	if len(s.waiting) > 0 && time.Now().After(s.deadline) && !a.closed {
		text := procfamily.Describe(left)
		if err != nil {
			text = err.Error()
		}
		a.endSweep(text)
		return
	}
	s.timer.Reset(s.pause)
	s.pause = min(2*s.pause, sweepLastPause)
}

// killOnce sends SIGKILL to everything and returns what still lives.
func (a *agent) killOnce() ([]procfamily.Process, error) {
	f := a.target.Load()
	if f == nil {
		return nil, nil
	}
	// A launcher may still be root.
	if a.run != nil && a.run.pid != 0 {
		_ = unix.Kill(a.run.pid, unix.SIGKILL)
	}
	for _, x := range a.executions {
		if !x.gone {
			_ = unix.Kill(x.pid, unix.SIGKILL)
		}
	}
	if f.UID < 0 {
		return a.killDescendants(f)
	}
	if err := f.Strike(unix.SIGKILL, a.killer); err != nil {
		return nil, err
	}
	a.reap()
	// One signal hit all of them, so an empty look is proof; see [procfamily.Family.Kill].
	left, err := f.Members()
	if err == nil && len(left) == 0 {
		a.reap() // the last may have died since, and who asks next wants to know what it used
	}
	return left, err
}

// killDescendants looks at children: this process takes over orphans, so it has a child
// while a process of the payload lives.
func (a *agent) killDescendants(f *procfamily.Family) ([]procfamily.Process, error) {
	if childless := a.reap(); childless {
		return nil, nil
	}
	if _, err := f.Signal(unix.SIGKILL, nil); err != nil {
		return nil, err
	}
	if childless := a.reap(); childless {
		return nil, nil
	}
	left, err := f.Members()
	if err == nil && len(left) == 0 {
		err = errChildrenLeft // started after the look, or not reaped yet
	}
	return left, err
}

var errChildrenLeft = errors.New("children are left")

// removeLeftovers removes what outlives processes, if only payloads have the payload's
// user. It returns what it could not remove.
func (a *agent) removeLeftovers() string {
	if a.uid != 0 || a.run == nil {
		return ""
	}
	if err := removeLeftovers(a.run.spec.UID, a.run.spec.GID); err != nil {
		a.log.print("%v", err)
		return err.Error()
	}
	return ""
}

// emptyTemporary prepares the container for the next job of the same owner.
func (a *agent) emptyTemporary() {
	if a.uid != 0 || a.companion || a.last.uid == 0 {
		return
	}
	if failure := a.setLinks(nil); failure != nil { // /tmp may be one
		a.log.print("%v", failure)
		a.soiled = failure.Error()
		return
	}
	if err := removeTemporary(temporaryDirs, maxTemporary, a.last.uid, a.last.gid); err != nil {
		a.log.print("%v", err)
		a.soiled = err.Error()
	}
}

// endSweep answers those who asked.
func (a *agent) endSweep(failure string) {
	s := a.sweep
	a.sweep = nil
	s.timer.Stop()
	if failure == "" {
		failure = a.removeLeftovers()
	}
	a.clean, a.soiled = failure == "", failure
	if a.clean {
		a.unwatchTasks()
	}
	for _, id := range s.waiting {
		if failure != "" {
			a.refuse(id, payload.CodeNotEmpty, failure)
		} else {
			a.reply(payload.Message{ID: id, Done: true})
		}
	}
	if a.closed {
		a.free()
	}
}
