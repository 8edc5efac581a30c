package activation

import (
	"context"
	"time"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/starter/submitside"
)

// processAd is what is known of the job's process alone.
func (a *activation) processAd(state job.State) *classads.Ad {
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
	job.PublishProcess(ad, p, a.opt.Settings.Config)
	return ad
}

// fullAd is a whole update: the process, the sandbox, and what the startd
// measured.
func (a *activation) fullAd(ctx context.Context, state job.State) *classads.Ad {
	ad := a.processAd(state)
	about := a.about(ctx)
	about.Delayed = a.io.TakeDelayed() // of no use to exitAd
	job.PublishActivation(ad, about, a.opt.Settings.Config)
	a.publishVacate(ad)
	return ad
}

// about is what updates say beside the process.
func (a *activation) about(ctx context.Context) job.Activation {
	about := job.Activation{
		StarterAddress: a.peers.address,
		Spooled:        a.files.Spooled(),
		NestDelayed:    a.peers.shadow.Version().AtLeast(25, 3, 0),
		Startd:         a.startdMeasures(),
	}
	if a.job.Info.FileTransfer && a.job.Sandbox != nil {
		about.Sandbox = a.gauges.size.Measure(ctx, a.job.Sandbox)
	}
	return about
}

// addLoadEnd tells the startd of a payload that has ended that it is no load.
func (a *activation) addLoadEnd(ad *classads.Ad) {
	if a.work.run != nil && a.work.run.Exit != nil {
		a.gauges.load.AddEnd(ad)
	}
}

// publishVacate adds why the job is made to end, if it is. A hold is told to the
// shadow by itself (starter.cpp:publishJobInfoAd, remoteVacateCommand).
func (a *activation) publishVacate(ad *classads.Ad) {
	if e := a.orders.Ended(); e != nil && !e.Hold {
		job.PublishVacate(ad, job.Vacated{Reason: e.Reason, Code: e.Code, Subcode: e.Subcode})
	}
}

// publishPorts adds where services of the job are reached, of jobs to which
// docker would give ports.
func (a *activation) publishPorts(ad *classads.Ad, runs bool) {
	if a.job.FromImage() {
		job.PublishPorts(ad, a.job.Ad, runs)
	}
}

// finalUpdate is the last the startd hears: from then on it takes the slot for
// being cleaned up. It happens once.
func (a *activation) finalUpdate(ctx context.Context) *classads.Ad {
	a.creds.Stop()
	ad := classads.NewAd()
	if a.job.Sandbox != nil {
		ad = a.fullAd(ctx, "")
	}
	ad.SetInt("BytesSent", a.files.Sent())
	ad.SetInt("BytesRecvd", a.files.Received())
	a.peers.reports.Final(ctx, ad)
	return ad
}

// state is what updates say of a job that runs.
func (a *activation) state() job.State {
	if a.work.suspended.Load() {
		return job.Suspended
	}
	return job.Running
}

// reportsTo says who hears of this job.
func (a *activation) reportsTo() submitside.ReportsTo {
	return submitside.ReportsTo{
		Shadow: a.peers.shadow, Startd: a.peers.startd, Half: a.peers.half, Address: a.peers.address,
		GiveBack: a.io.GiveBack, StartdOnly: a.addLoadEnd, Log: a.log,
	}
}

// guide asks the shadow what to do next.
func (a *activation) guide() submitside.Guide {
	return submitside.Guide{Shadow: a.peers.shadow, Diagnose: a.sitePrograms().Diagnose, Silent: a.opt.Settings.Condor.Silent, Log: a.log}
}
