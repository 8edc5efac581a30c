package agent

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"podstarter/payload"
)

// request serves one line of the starter.
func (a *agent) request(line []byte) {
	r, err := payload.DecodeRequest(line)
	if err == nil && r.ID <= 0 {
		err = fmt.Errorf("id %d is not above 0", r.ID)
	}
	if err != nil {
		a.refuse(max(r.ID, 0), payload.CodeBadRequest, err.Error())
		return
	}
	switch r.Op {
	case payload.OpStart:
		a.start(r)
	case payload.OpSignal:
		a.signal(r)
	case payload.OpUsage:
		a.ask(r.ID)
	case payload.OpSweep:
		if a.run == nil && a.soiled == "" {
			a.emptyTemporary()
		}
		if a.run == nil && a.soiled != "" {
			// The payload of an earlier connection left this: the container must not be used
			// again.
			a.refuse(r.ID, payload.CodeNotEmpty, a.soiled)
			return
		}
		a.beginSweep(r.ID, payload.KilledSweep)
	case payload.OpExec:
		a.exec(r)
	case payload.OpLeave:
		a.reply(payload.Message{ID: r.ID, Done: true})
		a.killForGood("told to leave")
		a.end()
	default:
		a.refuse(r.ID, payload.CodeBadRequest, fmt.Sprintf("unknown request %.40q", r.Op))
	}
}

// signal sends a signal to the main process, or to the whole payload.
func (a *agent) signal(r payload.Request) {
	sig := syscall.Signal(r.Signal)
	if r.Signal < 1 || r.Signal > lastSignal {
		a.refuse(r.ID, payload.CodeBadRequest, fmt.Sprintf("there is no signal %d", r.Signal))
		return
	}
	reached, err := a.send(sig, r)
	switch {
	case err != nil:
		a.refuse(r.ID, payload.CodeFailed, err.Error())
	case !reached:
		a.refuse(r.ID, payload.CodeNoPayload, "no process to signal")
	default:
		a.reply(payload.Message{ID: r.ID, Done: true})
	}
}

func (a *agent) send(sig syscall.Signal, r payload.Request) (reached bool, err error) {
	if r.Whole {
		f := a.target.Load()
		if f == nil {
			return false, nil
		}
		if a.run.running() && a.run.launched && f.UID >= 0 {
			return true, f.Strike(sig, a.killer)
		}
		n, err := f.Signal(sig, a.killer)
		return n > 0, err
	}
	if a.run == nil {
		return false, nil
	}
	pid := a.run.pid
	if !a.run.launched {
		pid = 0
	}
	if r.Of != 0 {
		pid = a.executionOf(r.Of)
	}
	if pid == 0 {
		return false, nil
	}
	// The process is a child that has not been waited for, so no other process has its ID.
	if a.killer != nil && !a.run.spec.AsRoot {
		err = a.killer.SignalOne(a.run.spec.UID, pid, sig)
	} else if err = unix.Kill(pid, sig); err != nil {
		err = fmt.Errorf("send signal %d to process %d: %w", int(sig), pid, err)
	}
	return err == nil, err
}
