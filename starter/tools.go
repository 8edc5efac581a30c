package main

import (
	"context"
	"errors"
	"sync"

	"podstarter/classads"
	"podstarter/condor/owner"
	"podstarter/internal/cedar"
	"podstarter/payload"
)

// tools is what the commands of the job's owner know of the activation. They
// are served while its phases go on, so the phases tell them here what they may
// use, and nothing else of the activation is touched.
type tools struct {
	opening  sync.RWMutex // held for reading while the sandbox is used
	mu       sync.Mutex
	job      *classads.Ad // nil before the environment of the job is ready
	slot     *classads.Ad
	spec     *payload.Spec // of the main process; nil before it was started
	pid      int
	finished bool
	entered  bool // somebody has logged in to an interactive job
}

// ready tells that the job's sandbox is as the job will find it
// (starter.cpp:jobEnvironmentReady).
func (t *tools) ready(job, slot *classads.Ad) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.job, t.slot = job.Clone(), slot.Clone()
}

// started tells what runs as the job.
func (t *tools) started(spec payload.Spec, pid int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spec, t.pid = &spec, pid
}

// main is what runs as the job; nil before it does.
func (t *tools) main() (*payload.Spec, int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.spec, t.pid
}

// finish tells that nothing of the job runs any more
// (starter.cpp:allJobsDone). When it returns, nobody uses the sandbox.
func (t *tools) finish() {
	t.opening.Lock()
	defer t.opening.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.finished = true
}

// ads are the ads of job and slot, both nil before they are ready.
func (t *tools) ads() (job, slot *classads.Ad) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.job, t.slot
}

// state says why nobody can look into the job now; nil when they can.
func (t *tools) state() *owner.Refusal {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.job == nil:
		return &owner.Refusal{Reason: "Retrying request, because the job execution environment is not yet ready.", Retry: true}
	case t.finished:
		return &owner.Refusal{Reason: "Rejecting request, because the job is finished."}
	}
	return nil
}

// serveOwner registers the commands of the job's owner.
func (a *activation) serveOwner(server *cedar.Server) {
	server.Handle(cedar.CreateJobOwnerSecSession, cedar.Daemon, a.commandOwnerSession)
	server.Handle(cedar.StarterPeek, cedar.Read, a.ownerOnly(refusing(a.commandPeek)))
	server.Handle(cedar.StartSSHD, cedar.Read, a.ownerOnly(refusing(a.commandLogin)))
}

// refusing sends the refusals of a command of the owner to the tool.
func refusing(serve cedar.Handler) cedar.Handler {
	return func(ctx context.Context, c *cedar.Call) error {
		err := serve(ctx, c)
		if refusal := (*owner.Refusal)(nil); errors.As(err, &refusal) {
			return errors.Join(err, refusal.Send(c.Stream))
		}
		return err
	}
}

// permitted is the part of the decision that all tools share: the knob, which
// is an expression over slot and job, and whether there is something to look
// into.
func (a *activation) permitted(knob string) error {
	job, slot := a.tools.ads()
	enabled, err := a.cfg.EvalBool(knob, true, slot, job)
	if err != nil {
		a.log.Warn("A knob about tools is not understood, its default holds", "error", err)
	}
	if !enabled {
		return &owner.Refusal{Reason: "Rejecting request, because " + knob + "=false"}
	}
	if refusal := a.tools.state(); refusal != nil {
		return refusal
	}
	return nil
}
