package activation

import (
	"context"
	"log/slog"
	"time"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/condor/version"
	"podstarter/starter/ioproxy"
	"podstarter/starter/orders"
	"podstarter/starter/payloadrun"
	"podstarter/starter/transfer"
)

// account builds the ads of updates. The phases and the updates beside them use it;
// what it reads changes only between phases.
type account struct {
	job    *payloadrun.Job
	work   *work
	gauges *gauges
	orders *orders.Orders
	peers  *peers
	io     *ioproxy.Proxy
	files  func() *transfer.Files
	log    *slog.Logger
}

// process is the part of an update about the job's process.
func (a account) process(state job.State) *classads.Ad {
	ad := classads.NewAd()
	if a.work.run == nil {
		return ad
	}
	p := job.Process{
		PID: a.work.run.Started.PID, Started: a.work.run.Started.Time,
		State: state, Now: time.Now(),
	}
	a.gauges.meter.AddTo(&p)
	if exit := a.work.run.Exit; exit != nil {
		p.Started, p.Ended, p.Status = exit.Started, exit.Ended, a.work.run.Status()
		p.CoreDumped = a.work.coreFile != ""
	}
	job.PublishProcess(ad, p, a.job.Settings.Config)
	a.job.Info.Node.Publish(ad)
	a.work.run.Java.Publish(ad)
	return ad
}

// full is a whole update: the process, the sandbox, and what the startd
// measured.
func (a account) full(ctx context.Context, state job.State) *classads.Ad {
	ad := a.process(state)
	about := a.about(ctx)
	about.Delayed = a.io.TakeDelayed() // exiting leaves them to the final update
	job.PublishActivation(ad, about, a.job.Settings.Config)
	a.publishVacate(ad)
	return ad
}

// about is what updates say beside the process.
func (a account) about(ctx context.Context) job.Activation {
	about := job.Activation{
		StarterAddress: a.peers.address.String(),
		Spooled:        a.files().Spooled(),
		NestDelayed:    a.peers.shadow.Version().AtLeast(25, 3, 0),
		Startd:         a.job.StartdMeasures(),
	}
	if a.job.Info.FileTransfer && a.job.Sandbox != nil {
		about.Sandbox = a.gauges.size.Measure(ctx, a.job.Sandbox)
	}
	return about
}

// addLoadEnd tells the startd that an ended payload causes no more load.
func (a account) addLoadEnd(ad *classads.Ad) {
	if a.work.run != nil && a.work.run.Exit != nil {
		a.gauges.load.AddEnd(ad)
	}
}

// publishVacate adds why the job has to end, if it has to. The shadow hears of a
// hold in a call of its own (starter.cpp:publishJobInfoAd, remoteVacateCommand).
func (a account) publishVacate(ad *classads.Ad) {
	if e := a.orders.Ended(); e != nil && !e.Hold {
		job.PublishVacate(ad, job.Vacated{Reason: e.Reason, Code: e.Code, Subcode: e.Subcode})
	} else if run := a.work.run; e == nil && run != nil && run.Java.Unfit != "" { // stock gives no reason
		job.PublishVacate(ad, job.Vacated{Reason: run.Java.Unfit, Code: shadow.VacateContainerError})
	}
}

// publishPorts adds where the job's services are reached, for jobs to which
// docker would give ports.
func (a account) publishPorts(ad *classads.Ad, runs bool) {
	if a.job.FromImage() {
		job.PublishPorts(ad, a.job.Ad, runs)
	}
}

// state is what updates say of a job that runs.
func (a account) state() job.State {
	if a.work.suspended.Load() {
		return job.Suspended
	}
	return job.Running
}

// exiting is the update of a job that has ended, before and after its output is
// transferred (jic_shadow.cpp:publishJobExitAd).
func (a account) exiting(ctx context.Context) *classads.Ad {
	ad := a.process(job.Exited)
	about := a.about(ctx)
	about.Exiting = true
	job.PublishActivation(ad, about, a.job.Settings.Config)
	a.work.scripts.Publish(ad)
	a.publishPorts(ad, false)
	a.publishVacate(ad)
	return ad
}

// reaped is the update at the moment of the end: the shadow expects a job that
// ends to have run before.
func (a account) reaped() *classads.Ad {
	ad := a.process(a.state())
	a.publishVacate(ad)
	if job.WantsToE(version.Of(a.job.Version())) {
		a.publishToE(ad)
	}
	return ad
}

// publishToE says how the job came to end, as starters before 24.8 do.
func (a account) publishToE(ad *classads.Ad) {
	if !a.work.run.Ordered() {
		job.PublishToE(ad, a.work.run.Status(), a.work.run.Exit.Ended)
		return
	}
	// The startd knows who ended it, and adds that to the job's ad.
	text, err := a.job.Sandbox.ReadFile(job.JobAdFile, payloadrun.MaxStartdAd)
	if err != nil {
		a.log.Debug("Failed to read who ended the job", "error", err)
		return
	}
	told, err := classads.ParseOld(string(text))
	if err != nil {
		a.log.Debug("Failed to understand who ended the job", "error", err)
		return
	}
	job.ForwardToE(ad, told)
}
