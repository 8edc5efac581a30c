package visitors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"syscall"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/condor/owner"
	"podstarter/internal/cedar"
	"podstarter/payload"
	"podstarter/sandbox/beneath"
)

// Sandbox is where the job's files are, opened with the payload's rights.
type Sandbox interface {
	Scratch() string
	Open(name string) (*beneath.File, int64, error)
}

// Options are what a [Desk] works with.
type Options struct {
	Sessions  *cedar.Sessions // of the command endpoint
	Config    *config.Config  // for ENABLE_PEEK_JOB and ENABLE_SSH_TO_JOB, expressions over slot and job
	KeygenArg string          // SSH_TO_JOB_SSH_KEYGEN_ARGS
	Address   fmt.Stringer    // of the command endpoint; may change
	Suspended func() bool     // whether the job is stopped
	Log       *slog.Logger
}

// Desk serves the job's owner while the job's phases go on. The phases tell it what it
// may use, and it touches nothing else of the activation. All methods may be called by
// any goroutine.
type Desk struct {
	Options
	owner  owners
	visits *visits

	// opening is held for reading while the sandbox is used.
	opening sync.RWMutex

	mu      sync.Mutex
	stage   stage
	box     Sandbox
	job     *classads.Ad
	slot    *classads.Ad
	wrapper payload.Wrapper
	spec    *payload.Spec // of the main process
	ofImage int           // so many of its variables
	pid     int
	through Entrance // nil: sessions are beside the job already
	entered bool     // somebody has logged in to an interactive job
}

// stage is what there is to look into. It only grows.
type stage int

const (
	notReady stage = iota
	ready          // the sandbox is as the job will find it
	started        // the main process was started
	finished       // nothing of the job runs any more
)

// New returns a desk that knows no job yet.
func New(o Options) *Desk {
	return &Desk{Options: o, visits: newVisits()}
}

// Know takes from the job's ad who may have sessions, and who may ask for them.
// version is that of the startd, in the form of HTCondor's daemons.
func (d *Desk) Know(job *classads.Ad, version string) { d.owner.know(job, version) }

// Ready tells that the job's sandbox is as the job will find it
// (starter.cpp:jobEnvironmentReady).
func (d *Desk) Ready(job, slot *classads.Ad, box Sandbox) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.job, d.slot, d.box = job.Clone(), slot.Clone(), box
	d.stage = max(d.stage, ready)
}

// Started tells what runs as the job, and who can run something beside it. The first ofImage variables of the job are its
// image's.
func (d *Desk) Started(w payload.Wrapper, spec payload.Spec, ofImage, pid int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wrapper, d.spec, d.ofImage, d.pid = w, &spec, ofImage, pid
	d.stage = max(d.stage, started)
}

// Entrance gives the command, with argv[0], and the environment by which a script of /bin/sh runs in the image of a job that
// the machine's own runtime runs. pid is the job's main process, 0 if it has ended; env is the environment that the script is to
// have.
type Entrance func(pid int, env []string, script string, args ...string) (argv, whole []string, err error)

// Through tells how sessions come into the job's image, before [Desk.Started].
func (d *Desk) Through(e Entrance) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.through = e
}

// Finish tells that nothing of the job runs any more (starter.cpp:allJobsDone). When it
// returns, nobody uses the sandbox.
func (d *Desk) Finish() {
	d.opening.Lock()
	defer d.opening.Unlock()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stage = finished
}

// main is what runs as the job; nil before it does.
func (d *Desk) main() (payload.Wrapper, *payload.Spec, int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wrapper, d.spec, d.pid
}

// ads are the ads of job and slot, both nil before they are ready.
func (d *Desk) ads() (job, slot *classads.Ad) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.job, d.slot
}

// state says why nobody can look into the job now; nil when they can.
func (d *Desk) state() *owner.Refusal {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.job == nil:
		return &owner.Refusal{Reason: "Retrying request, because the job execution environment is not yet ready.", Retry: true}
	case d.stage == finished:
		return &owner.Refusal{Reason: "Rejecting request, because the job is finished."}
	}
	return nil
}

// Serve registers the commands of the job's owner.
func (d *Desk) Serve(server *cedar.Server) {
	server.Handle(cedar.CreateJobOwnerSecSession, cedar.Daemon, d.openSession)
	server.Handle(cedar.StarterPeek, cedar.Read, d.ownerOnly(refusing(d.peek)))
	server.Handle(cedar.StartSSHD, cedar.Read, d.ownerOnly(refusing(d.login)))
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

// permitted is the part of the decision that all tools share: the knob, which is an
// expression over slot and job, and whether there is something to look into.
func (d *Desk) permitted(knob string) error {
	job, slot := d.ads()
	enabled, err := d.Config.EvalBool(knob, true, slot, job)
	if err != nil {
		d.Log.Warn("A knob about tools is not understood, its default holds", "error", err)
	}
	if !enabled {
		return &owner.Refusal{Reason: "Rejecting request, because " + knob + "=false"}
	}
	if refusal := d.state(); refusal != nil {
		return refusal
	}
	return nil
}

// AsVisited is the exit of the job. An interactive job that somebody has logged in to
// succeeds, although its placeholder was killed; under stock it ends like the visitor's
// sshd, with 0 or 255 (sshd_proc.cpp:SSHDProc::PublishUpdateAd).
func (d *Desk) AsVisited(e payload.Exit) payload.Exit {
	d.mu.Lock()
	defer d.mu.Unlock()
	if status := syscall.WaitStatus(e.WaitStatus); d.entered && status.Signaled() && status.Signal() == syscall.SIGTERM {
		e.WaitStatus = 0
	}
	return e
}

// Visited tells whether somebody is logged in.
func (d *Desk) Visited() bool { return d.visits.any() }

// Left has a value when somebody has logged out.
func (d *Desk) Left() <-chan struct{} { return d.visits.left }

// EndVisits logs everybody out, also those who come later.
func (d *Desk) EndVisits() { d.visits.end() }
