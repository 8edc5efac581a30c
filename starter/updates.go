package main

import (
	"context"
	"errors"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
)

// tell is update for what is not said again if it was not heard: what the job
// has become by then is told to a shadow that comes back.
func (a *activation) tell(ctx context.Context, ad *classads.Ad) {
	if err := a.update(ctx, ad); err != nil {
		a.log.Warn("The shadow did not hear of an update", "error", err)
	}
}

// update sends an ad to shadow and startd. Only the loss of the shadow is an
// error; a shadow never refuses an update.
func (a *activation) update(ctx context.Context, ad *classads.Ad) error {
	a.updating.Lock()
	defer a.updating.Unlock()
	job.PublishInterval(ad, a.promised)
	err := a.shadow.RegisterJobInfo(uncut(ctx), ad)
	if err != nil {
		a.chirp.giveBackDelayed(ad)
		ad.SetBool("STARTER_DISCONNECTED_FROM_SUBMIT_NODE", true)
	}
	ad.SetString("CondorScratchDir", a.sandbox.Scratch())
	a.addLoadEnd(ad)
	// From the first update on: shadows that come back ask the startd, and tools
	// would be told for seconds that the job has no starter.
	ad.SetString("StarterIpAddr", a.address)
	if err := a.startd.Update(ctx, ad); err != nil {
		a.log.Warn("Failed to send an update to the startd", "error", err)
	}
	return ignoreUnlessLost(err)
}

// processAd is what is known of the job's process alone.
func (a *activation) processAd(state job.State) *classads.Ad {
	ad := classads.NewAd()
	if a.payload == nil {
		return ad
	}
	p := job.Process{
		PID: a.payload.started.PID, Started: a.payload.started.Time,
		State: state, Now: now(),
	}
	a.meter.AddTo(&p)
	if exit := a.payload.exit; exit != nil {
		p.Started, p.Ended, p.Status = exit.Started, exit.Ended, a.payload.status()
		p.CoreDumped = a.coreFile != ""
	}
	job.PublishProcess(ad, p, a.cfg)
	return ad
}

// fullAd is a whole update: the process, the sandbox, and what the startd
// measured.
func (a *activation) fullAd(ctx context.Context, state job.State) *classads.Ad {
	ad := a.processAd(state)
	about := a.about(ctx)
	about.Delayed = a.chirp.takeDelayed() // of no use to exitAd
	job.PublishActivation(ad, about, a.cfg)
	a.publishVacate(ad)
	return ad
}

// about is what updates say beside the process.
func (a *activation) about(ctx context.Context) job.Activation {
	about := job.Activation{
		StarterAddress: a.address,
		Spooled:        a.spooled,
		NestDelayed:    a.shadow.Version().AtLeast(25, 3, 0),
		Startd:         a.startdMeasures(),
	}
	if a.info.FileTransfer && a.sandbox != nil {
		about.Sandbox = a.size.Measure(ctx, a.sandbox)
	}
	return about
}

// addLoadEnd tells the startd of a payload that has ended that it is no load.
func (a *activation) addLoadEnd(ad *classads.Ad) {
	if a.payload != nil && a.payload.exit != nil {
		a.load.AddEnd(ad)
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
	if a.dockerRules() {
		job.PublishPorts(ad, a.ad, runs)
	}
}

// finalUpdate is the last the startd hears: from then on it takes the slot for
// being cleaned up. It happens once.
func (a *activation) finalUpdate(ctx context.Context) *classads.Ad {
	a.stopRenewing()
	ad := classads.NewAd()
	if a.sandbox != nil {
		ad = a.fullAd(ctx, "")
	}
	ad.SetInt("BytesSent", a.files.sent())
	ad.SetInt("BytesRecvd", a.files.received())
	a.updating.Lock()
	defer a.updating.Unlock()
	if !a.finalSent {
		a.finalSent = true
		if err := a.startd.FinalUpdate(ctx, ad); err != nil {
			a.log.Warn("Failed to send the final update to the startd", "error", err)
		}
	}
	return ad
}

// ignoreUnlessLost passes on that the shadow is gone; that it said no to
// something it only had to be told is of no consequence.
func ignoreUnlessLost(err error) error {
	if errors.Is(err, shadow.ErrLost) {
		return err
	}
	return nil
}

// state is what updates say of a job that runs.
func (a *activation) state() job.State {
	if a.suspended.Load() {
		return job.Suspended
	}
	return job.Running
}
