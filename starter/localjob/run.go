package localjob

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/condor/daemonlog"
	"podstarter/condor/job"
	"podstarter/condor/jobpolicy"
	"podstarter/condor/qmgmt"
	"podstarter/condor/startd"
	"podstarter/condor/userlog"
	"podstarter/internal/cedar"
	"podstarter/localexec"
	"podstarter/payload"
	"podstarter/rescue"
	"podstarter/starter/endpoint"
	"podstarter/starter/hooks"
	"podstarter/starter/orders"
	"podstarter/starter/payloadrun"
	"podstarter/starter/settings"
	"podstarter/starter/usage"

	"podstarter/classads"
)

// Exit codes of the process, by which the schedd learns what becomes of the job (HTCondor src/condor_includes/exit.h,
// src/condor_schedd.V6/schedd.cpp:shadowExitCode).
const (
	ExitGeneral   = 1
	ExitException = 4
	ExitCompleted = 100
	ExitRequeue   = 107
	ExitHold      = 112
	ExitRemove    = 113
	ExitMissed    = 114
)

// Options are what the schedd and the administrator said of a job.
type Options struct {
	Schedd   string    // address
	Input    io.Reader // the job's ad
	Version  string    // "$CondorVersion: ...$" of this program
	Env      []string
	Settings settings.Settings
	// NewBackend makes the backend that runs the job, with its files below a directory; as is the user, nil if this process
	// cannot switch to another.
	NewBackend func(dir string, as *localexec.Account) (payload.Backend, error)
	// RequeuePause is before a job that this machine cannot run now goes back to the queue: the schedd starts it again at once.
	RequeuePause time.Duration
	LogFile      *daemonlog.Log // nil in tests
	Log          *slog.Logger

	lastPatience time.Duration // another one than patience, for tests
}

// life is one job. All of it belongs to the goroutine of run, except what is safe for others by its type.
type life struct {
	opt    Options
	log    *slog.Logger
	orders *orders.Orders
	policy *jobpolicy.Policy

	inherited *startd.Inheritance
	address   *startd.Address
	sessions  *cedar.Sessions
	queue     *qmgmt.Updater

	ad      *classads.Ad
	owner   owner
	events  *userlog.Log
	job     payloadrun.Job
	wrapper hooks.Wrapper
	scripts payloadrun.Scripts
	meter   *usage.Meter

	control   string // directory of the wrapper; empty before there is one
	lease     payload.Lease
	container *payloadrun.Container
	begun     bool            // its event log says so
	run       *payloadrun.Run // nil before its program runs
	decided   *jobpolicy.Decision

	lastPatience time.Duration // see patiently
	hangs        bool          // a file system of the owner
	group        rescue.Group
	released     sync.Once // of the wrapper while the job runs
}

// Run lives the job; the result is the exit code of the process.
func Run(ctx context.Context, o Options) (code int) {
	restore := rescue.Handle(func(p *rescue.Panic) {
		o.Log.Error("This program has failed; the job goes back to the queue", "error", p, "stack", p.Stack)
		os.Exit(ExitException) // wrapper and job end with this process
	})
	defer restore()
	l, err := take(ctx, o)
	if err != nil {
		o.Log.Error("Cannot take this job over from the schedd", "error", err)
		timer := time.NewTimer(o.RequeuePause) // a signal ends the process: nothing catches it yet
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		return ExitGeneral
	}
	if o.LogFile != nil {
		o.LogFile.CommandSocket(l.address.String())
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	l.serve(ctx)
	err = rescue.Do(func() error { return l.live(ctx) })
	code = l.conclude(ctx, err)
	l.clean(ctx)
	return code
}

// take takes over what the schedd passed on.
func take(ctx context.Context, o Options) (*life, error) {
	l := &life{opt: o, log: o.Log, orders: orders.New(o.Log), policy: jobpolicy.Of(o.Settings.Config), lastPatience: cmp.Or(o.lastPatience, patience)}
	for _, warning := range append(o.Settings.Condor.Warnings, l.policy.Invalid...) {
		l.log.Warn("A knob is not understood, its default holds", "error", warning)
	}
	var err error
	if l.inherited, err = startd.InheritFromSchedd(o.Env); err != nil {
		return nil, err
	}
	// The inheritance was read and is secret: no child may see it.
	for _, name := range startd.SecretVariables() {
		if err := os.Unsetenv(name); err != nil {
			return nil, fmt.Errorf("remove %s from the environment: %w", name, err)
		}
	}
	// The owner can end the wrapper, which leaves its orphans to this process.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("take over orphans (PR_SET_CHILD_SUBREAPER): %w", err)
	}
	l.address = l.inherited.OwnAddress(o.Settings.Config)
	l.sessions = cedar.NewSessions()
	for _, s := range []*cedar.Session{l.inherited.ParentSession, l.inherited.FamilySession} {
		if s == nil {
			continue
		}
		if err := l.sessions.Add(s); err != nil {
			return nil, err
		}
	}
	if l.ad, err = job.ReadLines(o.Input, l.log); err != nil {
		return nil, err
	}
	l.ad = l.ad.Public() // the rest is the schedd's, and the job may ask for attributes in its log
	l.ad.Use(o.Settings.Language)
	if l.owner, err = ownerOf(ctx, l.ad, o.Settings.Config); err != nil {
		return nil, err
	}
	session := l.inherited.FamilySession
	if session == nil {
		session = l.inherited.ParentSession
	}
	l.queue = qmgmt.NewUpdater(qmgmt.Queue{
		Client: &cedar.Client{Version: o.Version, Own: l.address.String(), Name: "STARTER", Network: startd.Network(o.Settings.Config)},
		Addr:   o.Schedd, Session: session, User: l.ad.StringOr("User", ""),
	}, qmgmt.JobID{Cluster: int(l.ad.IntOr("ClusterId", 0)), Proc: int(l.ad.IntOr("ProcId", 0))}, l.ad)
	l.meter = usage.NewMeter(usage.Knobs(o.Settings.Condor.Measuring), l.log)
	return l, nil
}

// serve takes signals and the schedd's commands, until ctx ends.
func (l *life) serve(ctx context.Context) {
	refuse := func(what string) cedar.Handler {
		return func(context.Context, *cedar.Call) error {
			return fmt.Errorf("a job of the local universe has no shadow, so nobody can %s", what)
		}
	}
	endpoint.Serve(ctx, endpoint.Options{
		Inherited: l.inherited, Sessions: l.sessions, Version: l.opt.Version, Settings: l.opt.Settings, Orders: l.orders,
		Reconnect: refuse("reconnect"), Proxy: refuse("send it a proxy"), Owner: func(*cedar.Server) {}, Log: l.log,
	})
}
