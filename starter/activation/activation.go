package activation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/condor/daemonlog"
	"podstarter/condor/image"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/condor/startd"
	"podstarter/internal/cedar"
	"podstarter/payload"
	"podstarter/payload/proctable"
	"podstarter/rescue"
	"podstarter/sandbox"
	"podstarter/starter/credentials"
	"podstarter/starter/failure"
	"podstarter/starter/hostprog"
	"podstarter/starter/orders"
	"podstarter/starter/podhealth"
	"podstarter/starter/settings"
	"podstarter/starter/submitside"
	"podstarter/starter/transfer"
	"podstarter/starter/usage"
	"podstarter/starter/visitors"
)

// activation is one run of one job: everything between the startd starting
// this process and the process leaving. Its parts are set by the phases, in the
// order of live; each phase finds set what those before it are there for.
type activation struct {
	opt     Options
	cfg     *config.Config
	set     settings.Settings
	log     *slog.Logger
	environ []string // the starter's own, without what daemons keep secret
	name    string   // unique in the pod; leases, nonces and exit records carry it
	backend payload.Backend
	orders  *orders.Orders
	// failures are of this program; nil in tests.
	failures *failures

	host   *hostprog.Host      // where programs run for the job
	health *podhealth.Observer // notes what this activation learns of the pod

	// who is talked to
	inherited    *startd.Inheritance
	address      string // own command address, StarterIpAddr
	sessions     *cedar.Sessions
	submit       *submitside.Side
	half         *submitside.Half
	reports      *submitside.Reports
	claimSession *cedar.Session // with the submit side; nil if the shadow gave none
	shadow       *shadow.Client
	startd       *startd.UpdateSocket

	// the job and its place
	ad, machine, overlay, secrets *classads.Ad
	info                          job.Info
	hooks                         job.Hooks
	image                         image.Decision
	lease                         payload.Lease
	home                          string
	sandbox                       *sandbox.Sandbox
	files                         *transfer.Files
	creds                         *credentials.Keeper
	proxies                       credentials.Renewals
	chirp                         ioProxy
	container                     payload.Container
	table                         *proctable.Table // the payload's processes; nil where the starter does not see them

	desk *visitors.Desk // where the job's owner looks in

	// the payload and what is told of it
	payload     *payloadRun
	streams     *streams // of the run; nil before the first
	runs        int      // of the payload so far; a checkpoint is between two
	checkpoint  int64    // number of the latest, as the job counts them
	meter       *usage.Meter
	size        *usage.SandboxSize
	load        usage.LoadReport // to the startd
	coreFile    string           // in the sandbox; empty if the job left none
	suspended   atomic.Bool
	hookEnded   <-chan struct{} // closed when the last UPDATE_JOB_INFO hook has ended; nil before the first
	exitHookRan bool
	scripts     scripts
	tearDownDue bool   // the site's programs have prepared the job's places
	wrapper     string // USER_JOB_WRAPPER where the job runs; empty for none
	wrapped     bool   // the job runs under the site's USER_JOB_WRAPPER
	swept       bool
	restUntil   time.Time // no update by the clock before; periodic is held
	periodic    sync.Mutex
	background  rescue.Group // what watch has begun
}

// Options are what the startd and the administrator said of an activation.
type Options struct {
	Slot       string // the slot's id, "slot1_1"
	SubmitHost string // who activated the claim, for the log alone
	LogSuffix  string // of the log file's name
	JobLog     string // "FLAGS,PATH" of a second log inside the sandbox; empty for none
	Version    string // "$CondorVersion: ...$" of this program
	Env        []string
	Settings   settings.Settings
	Pod        podhealth.Pod
	Host       *hostprog.Host
	NewBackend func(ctx context.Context) (payload.Backend, error)
	LogFile    *daemonlog.Log // where Log's lines go; nil in tests
	Log        *slog.Logger
}

// newActivation adopts what the startd passed on and gets ready to be asked
// things. Nothing has been said to the shadow yet.
func newActivation(ctx context.Context, o Options) (*activation, error) {
	log := o.Log
	a := &activation{
		opt: o, set: o.Settings, cfg: o.Settings.Config, host: o.Host, log: log, environ: startd.ScrubEnv(o.Env),
		orders: orders.New(log), size: usage.NewSandboxSize(log), meter: usage.NewMeter(usage.Knobs(o.Settings.Condor.Measuring), log),
	}
	a.name = fmt.Sprintf("%s-%d-%s", safeName(o.Slot), os.Getpid(), strconv.FormatInt(time.Now().UnixNano(), 36))
	a.health = o.Pod.Observe(o.Slot, log)
	var err error
	if a.inherited, err = startd.Inherit(o.Env); err != nil {
		return nil, err
	}
	for _, w := range a.set.Condor.Warnings {
		log.Warn("A knob is not understood, its default holds", "error", w)
	}
	for _, u := range settings.UnknownKnobs(a.cfg) {
		log.Warn(u.String())
	}
	// What was inherited is in hand now, and secret: no child may see it.
	for _, name := range startd.SecretVariables() {
		if err := os.Unsetenv(name); err != nil {
			return nil, fmt.Errorf("remove %s from the environment: %w", name, err)
		}
	}
	if a.backend, err = o.NewBackend(ctx); err != nil {
		return nil, err
	}
	a.address = a.inherited.OwnAddress(a.cfg)
	a.shadow = shadow.New(a.inherited.Syscall, log)
	a.startd = startd.NewUpdateSocket(a.inherited.Update, log)
	a.sessions = cedar.NewSessions()
	a.meetPeers()
	for _, s := range []*cedar.Session{a.inherited.ParentSession, a.inherited.FamilySession} {
		if s == nil {
			continue
		}
		if err := a.sessions.Add(s); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// meetPeers makes what stands between the phases and those who are told of the job.
func (a *activation) meetPeers() {
	a.submit = submitside.New(a.shadow, a.orders, a.log)
	a.half = submitside.NewHalf(a.shadow, a.log)
	a.reports = submitside.NewReports(a.reportsTo())
	a.desk = visitors.New(visitors.Options{
		Sessions: a.sessions, Config: a.cfg, KeygenArg: a.set.Condor.KeygenArgs, Address: a.address, Suspended: a.suspended.Load, Log: a.log,
	})
}

// safeName keeps what may be part of a file's name.
func safeName(s string) string {
	safe := []byte(s)
	for i, c := range safe {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			safe[i] = '_'
		}
	}
	return string(safe)
}

// run lives the activation and concludes it; the result is the exit code of
// the process.
func (a *activation) run(ctx context.Context) int {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	a.listen(ctx)
	err := a.live(ctx)
	a.desk.EndVisits()
	code := a.conclude(ctx, err)
	a.clean(ctx)
	return code
}

// live is the whole life of a job that goes well. An error ends it where it
// happened; conclude says what that means to the job.
func (a *activation) live(ctx context.Context) error {
	before, release := a.orders.UntilAny(ctx)
	defer release()
	steps := []struct {
		name string
		run  func(context.Context) error
	}{
		{"register", a.register}, // which job it is, and on which slot
		{"prepare", a.prepare},   // a payload slot and a sandbox
		{"ready", a.getReady},    // stage-in beside bind
	}
	for _, step := range steps {
		if err := phase(before, a.log, step.name, step.run); err != nil {
			return err
		}
	}
	if err := a.deferStart(before); err != nil {
		return err
	}
	for again := true; again; {
		var err error
		if again, err = a.runOnce(before, ctx); err != nil {
			a.desk.Finish()
			return err
		}
	}
	a.desk.Finish()
	return phase(ctx, a.log, "finish", a.finish)
}

// runOnce runs the payload from its start, which an order of any kind cuts short,
// to its end, after which it may have to be run again.
func (a *activation) runOnce(before, ctx context.Context) (again bool, err error) {
	if err := phase(before, a.log, "start", a.start); err != nil {
		return false, err
	}
	if err := a.watch(ctx); err != nil {
		return false, err
	}
	return a.checkpointed(ctx)
}

// conclude tells startd and shadow of an end that live could not bring about
// itself, and picks the exit code of the process.
func (a *activation) conclude(ctx context.Context, err error) int {
	if err == nil {
		return ExitNormal
	}
	ended := a.orders.Ended()
	switch {
	case ended != nil && ended.Lost:
		a.log.Error("The shadow is gone, the job ends with it", "error", err)
		a.finalUpdate(ctx)
		return ExitLostShadow
	case ended != nil && (errors.Is(err, orders.ErrEnded) || errors.Is(err, shadow.ErrLost)):
		a.log.Info("The job ends before it could finish", "reason", ended.Error())
		a.exitHook(ctx)
		a.endEarly(ctx, *ended)
		return ExitNormal
	}
	if errors.Is(err, errMissedStart) {
		return a.endMissed(ctx, err)
	}
	a.health.Failed(failure.Blame(err, a.payload != nil))
	f := failure.Of(err)
	a.log.Error("The job cannot go on", "error", failure.OneLine(f), "code", f.Code, "subcode", f.Subcode)
	a.report(ctx, shadow.RemoteError{Message: f.Error(), Code: f.Code, Subcode: f.Subcode, Critical: true})
	switch f.Code {
	case shadow.VacateStarterError:
		return ExitGeneral
	case shadow.VacateCheckpointSaved:
		return int(shadow.JobShouldRequeue) // sic: vanilla_proc.cpp:JobReaper
	}
	return ExitNormal
}

// endEarly ends an activation whose job has no end of its own to report.
// Whoever asked through the shadow has told it already; every other demand is
// told to the shadow as a reason for another try, since a shadow that just
// loses its starter would wait for one to come back.
func (a *activation) endEarly(ctx context.Context, e orders.Demand) {
	if a.payload == nil && a.sandbox != nil {
		a.reports.Tell(ctx, a.exitAd(ctx))
	}
	if e.Code == shadow.VacateClaimDeactivated || a.reports.Held() {
		a.finalUpdate(ctx)
		return
	}
	a.report(ctx, shadow.RemoteError{Message: e.Error(), Code: e.Code, Subcode: e.Subcode, Critical: true})
}

// report is the last word to startd and shadow when the job has no exit. That
// a job which ran is to be held is worth waiting for the shadow; one that goes
// back to the queue does so without a word too.
func (a *activation) report(ctx context.Context, e shadow.RemoteError) {
	if a.payload != nil && !shadow.ShouldVacate(e.Code, e.Subcode) {
		if err := a.submit.Await(ctx); err != nil {
			a.log.Error("The shadow is not there to hold the job", "error", err)
		}
	}
	a.half.Await(ctx)
	a.finalUpdate(ctx)
	if err := a.reports.Error(ctx, e); err != nil {
		a.log.Error("Failed to send the error to the shadow", "error", err)
	}
}

// clean removes what the activation leaves on the machine, whatever happened.
func (a *activation) clean(ctx context.Context) {
	a.creds.Stop()
	a.chirp.close()
	a.streams.close()
	if a.container != nil {
		if err := a.sweep(ctx); err != nil {
			// The wrapper kills what is left when the slot is released.
			a.log.Warn("Failed to sweep the payload slot", "error", err)
		}
	}
	a.tearDown(ctx)
	if a.table != nil {
		a.table.Close()
	}
	a.shadow.Close()
	if a.sandbox != nil {
		a.log.Info("Removing " + a.sandbox.Dir())
		if err := a.sandbox.Remove(ctx); err != nil {
			a.log.Error("Failed to remove the sandbox; the startd will try again", "error", err)
		}
	}
	if a.lease != nil {
		uid, _ := a.lease.Owner()
		if err := a.removeTemporary(ctx, uid); err != nil {
			a.log.Error("Failed to tidy the pilot container; the next job's starter will try again", "error", err)
		}
		if err := a.lease.Release(ctx); err != nil {
			a.log.Error("Failed to release the payload slot", "error", err)
		}
	}
	a.log.Info("All jobs have exited... starter exiting")
}
