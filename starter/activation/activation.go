package activation

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"podstarter/condor/daemonlog"
	"podstarter/condor/image"
	"podstarter/condor/shadow"
	"podstarter/condor/startd"
	"podstarter/internal/cedar"
	"podstarter/payload"
	"podstarter/rescue"
	"podstarter/starter/credentials"
	"podstarter/starter/hooks"
	"podstarter/starter/hostprog"
	"podstarter/starter/inventory"
	"podstarter/starter/ioproxy"
	"podstarter/starter/journal"
	"podstarter/starter/orders"
	"podstarter/starter/payloadrun"
	"podstarter/starter/podgpus"
	"podstarter/starter/podhealth"
	"podstarter/starter/settings"
	"podstarter/starter/submitside"
	"podstarter/starter/transfer"
	"podstarter/starter/usage"
	"podstarter/starter/userimage"
	"podstarter/starter/visitors"
)

// activation is one run of one job: everything between the startd starting this process
// and the process leaving. All of it belongs to the goroutine of run, except pace and
// what is safe for others by its type.
type activation struct {
	opt     Options
	log     *slog.Logger
	phase   phase
	orders  *orders.Orders
	panics  *failures // of this program; nil in tests
	backend payload.Backend
	health  *podhealth.Observer // notes what this activation learns of the pod
	peers   peers

	job   payloadrun.Job // the job, its slot and its place
	image image.Decision
	// noNetwork says that nothing which runs in the payload container for the job has a network.
	noNetwork bool
	lease     payload.Lease
	site      site // the site's programs
	desk      *visitors.Desk
	io        ioproxy.Proxy

	files    *transfer.Files
	stagedIn chan struct{} // closed when the input is here
	creds    *credentials.Keeper
	proxies  credentials.Renewals

	work       work
	gauges     gauges
	account    account
	notes      notes
	pace       pace
	background rescue.Group // what goes on beside the running payload
}

// peers are those that the activation talks to.
type peers struct {
	inherited *startd.Inheritance
	address   *startd.Address // own command address, StarterIpAddr
	calls     submitside.Calls
	sessions  *cedar.Sessions
	claim     *cedar.Session // with the submit side; nil if the shadow gave none
	shadow    *shadow.Client
	startd    *startd.UpdateSocket
	side      *submitside.Side
	half      *submitside.Half
	reports   *submitside.Reports
	log       *slog.Logger
}

// site are the site's programs for this job.
type site struct {
	hooks   hooks.Hooks
	places  hooks.Places
	wrapper hooks.Wrapper
}

// work is what runs in the payload container.
type work struct {
	container  *payloadrun.Container // nil before one is bound
	scripts    payloadrun.Scripts
	streams    *payloadrun.Streams // of the run; nil before the first
	run        *payloadrun.Run     // the main process; nil before it was started
	runs       int                 // of the main process so far; a checkpoint is between two
	checkpoint int64               // number of the latest, as the job counts them
	coreFile   string              // in the sandbox; empty if the job left none
	inventory  inventory.Inventory // which the job may want
	suspended  atomic.Bool         // visitors read it, too
}

// gauges measure what the job uses.
type gauges struct {
	meter *usage.Meter
	size  *usage.SandboxSize
	load  usage.LoadReport // to the startd
}

// Options are what the startd and the administrator said of an activation.
type Options struct {
	Slot       string // the slot's id, "slot1_1"
	SubmitHost string // who activated the claim, as the startd names that; its common files are apart from those of others
	LogSuffix  string // of the log file's name
	JobLog     string // "FLAGS,PATH" of a second log inside the sandbox; empty for none
	Version    string // "$CondorVersion: ...$" of this program
	Env        []string
	Settings   settings.Settings
	Pod        podhealth.Pod
	GPUs       podgpus.Pod
	Host       *hostprog.Host
	NewBackend func(ctx context.Context) (payload.Backend, error)
	// Inherit takes over what the startd handed down, a connection to the shadow with it.
	Inherit func(env []string) (*startd.Inheritance, error)
	// Alone says that the job has no shadow: the hook for its end hears of each end.
	Alone bool
	// Registries are asked for images that only a job's user may pull; nil if nobody can.
	Registries userimage.Registries
	// Note appends an event to the journal for the pod's operator; nil for none.
	Note func(journal.Event) error
	// Calls are those of this process to the API server so far, by verb and code; nil for none.
	Calls func() map[string]int64
	// Rest makes the process small while the job runs; nil in tests, where the process is
	// not the activation's own.
	Rest    func() Rest
	LogFile *daemonlog.Log // where Log's lines go; nil in tests
	Log     *slog.Logger
}

// newActivation takes over what the startd passed on and gets ready to serve
// commands. It says nothing to the shadow yet.
func newActivation(ctx context.Context, o Options) (*activation, error) {
	log := o.Log
	a := &activation{opt: o, log: log, orders: orders.New(log), stagedIn: make(chan struct{})}
	a.gauges.size = usage.NewSandboxSize(log)
	a.gauges.meter = usage.NewMeter(usage.Knobs(o.Settings.Condor.Measuring), log)
	a.job = payloadrun.Job{
		Name: payloadrun.NewName(o.Slot),
		Slot: o.Slot, Settings: o.Settings, Environ: startd.ScrubEnv(o.Env), Log: log, Given: a.given,
	}
	a.proxies.Log = log
	a.notes = notes{write: o.Note, calls: o.Calls, began: time.Now()}
	a.account = account{
		job: &a.job, work: &a.work, gauges: &a.gauges, orders: a.orders, peers: &a.peers, io: &a.io,
		files: func() *transfer.Files { return a.files }, log: log,
	}
	a.work.scripts = payloadrun.Scripts{Job: &a.job, WrapperFailure: a.site.wrapper.Failure}
	a.health = o.Pod.Observe(o.Slot, log)
	var err error
	if a.peers.inherited, err = o.Inherit(o.Env); err != nil {
		return nil, err
	}
	for _, remark := range a.opt.Settings.Remarks() {
		log.Warn(remark)
	}
	// The inheritance was read and is secret: no child may see it.
	for _, name := range startd.SecretVariables() {
		if err := os.Unsetenv(name); err != nil {
			return nil, fmt.Errorf("remove %s from the environment: %w", name, err)
		}
	}
	if a.backend, err = o.NewBackend(ctx); err != nil {
		return nil, err
	}
	a.peers.log = log
	a.peers.address = a.peers.inherited.OwnAddress(a.opt.Settings.Config)
	a.peers.calls = submitside.NewCalls(a.peers.address, a.opt.Settings.Config, log)
	a.peers.inherited.Syscall.SetMultiplier(a.peers.calls.Network.Slow)
	a.peers.inherited.Update.SetMultiplier(a.peers.calls.Network.Slow)
	a.peers.shadow = shadow.New(a.peers.inherited.Syscall, log)
	a.peers.shadow.SetTimeout(a.opt.Settings.Condor.Transfer.Timeout)
	a.peers.startd = startd.NewUpdateSocket(a.peers.inherited.Update, log)
	a.peers.sessions = cedar.NewSessions()
	a.meetPeers()
	for _, s := range []*cedar.Session{a.peers.inherited.ParentSession, a.peers.inherited.FamilySession} {
		if s == nil {
			continue
		}
		if err := a.peers.sessions.Add(s); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// meetPeers makes the parts by which the phases talk to shadow, startd and owner.
func (a *activation) meetPeers() {
	a.peers.side = submitside.New(a.peers.shadow, a.orders, submitside.SecurityOf(a.opt.Settings.Config), a.log)
	a.peers.half = submitside.NewHalf(a.peers.shadow, a.log)
	a.peers.reports = submitside.NewReports(submitside.ReportsTo{
		Shadow: a.peers.shadow, Startd: a.peers.startd, Half: a.peers.half, Address: a.peers.address,
		GiveBack: a.io.GiveBack, StartdOnly: a.account.addLoadEnd, Log: a.log,
	})
	a.desk = visitors.New(visitors.Options{
		Sessions: a.peers.sessions, Config: a.opt.Settings.Config, KeygenArg: a.opt.Settings.Condor.KeygenArgs, Address: a.peers.address, Suspended: a.work.suspended.Load, Log: a.log,
	})
}
