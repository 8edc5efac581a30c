package activation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/condor/version"
)

// exitAd is the update of a job that has ended, before and after its output is
// transferred (jic_shadow.cpp:publishJobExitAd).
func (a *activation) exitAd(ctx context.Context) *classads.Ad {
	ad := a.processAd(job.Exited)
	about := a.about(ctx)
	about.Exiting = true
	job.PublishActivation(ad, about, a.opt.Settings.Config)
	a.work.scripts.Publish(ad)
	a.publishPorts(ad, false)
	a.publishVacate(ad)
	return ad
}

// reapedAd is the update at the moment of the end: the shadow expects a job that
// ends to have run before.
func (a *activation) reapedAd() *classads.Ad {
	ad := a.processAd(a.state())
	a.publishVacate(ad)
	if job.WantsToE(version.Of(a.version())) {
		a.publishToE(ad)
	}
	return ad
}

// finishHeld is the end of a job whose hold the shadow has been told: the startd
// alone hears how it ended.
func (a *activation) finishHeld(ctx context.Context) error {
	a.enter(held)
	a.peers.reports.TellStartd(ctx, a.reapedAd())
	err := a.work.container.Sweep(ctx)
	a.exitHook(ctx)
	a.peers.reports.TellStartd(ctx, a.exitAd(ctx))
	a.site.places.TearDown(ctx)
	a.finalUpdate(ctx)
	return err
}

// publishToE says how the job came to end, as starters before 24.8 do.
func (a *activation) publishToE(ad *classads.Ad) {
	if !a.work.run.Ordered() {
		job.PublishToE(ad, a.work.run.Status(), a.work.run.Exit.Ended)
		return
	}
	// Who ended it is known to the startd, which adds that to the job's ad.
	text, err := a.job.Sandbox.ReadFile(job.JobAdFile, maxStartdAd)
	if err != nil {
		a.log.Debug("Failed to look for who ended the job", "error", err)
		return
	}
	told, err := classads.ParseOld(string(text))
	if err != nil {
		a.log.Debug("Failed to understand who ended the job", "error", err)
		return
	}
	job.ForwardToE(ad, told)
}

// keepCore gives the core file that the job left in its sandbox a name of its
// own and lets it come back with the output (os_proc.cpp:checkCoreFile).
// The kernel names it core, or core.PID, where it does not hand it to a program
// of the node's (core(5)).
func (a *activation) keepCore() {
	if !a.job.Info.FileTransfer {
		return // where the job ran without a sandbox its core file is where it belongs
	}
	wanted := fmt.Sprintf("core.%d.%d", a.job.Info.Cluster, a.job.Info.Proc)
	for _, name := range []string{fmt.Sprintf("core.%d", a.work.run.Started.PID), "core"} {
		switch err := a.job.Sandbox.RenameFile(name, wanted); {
		case err == nil:
			a.log.Info("Found core file", "name", name, "renamed", wanted)
			a.work.coreFile = wanted
			return
		case !errors.Is(err, fs.ErrNotExist):
			a.log.Warn("Failed to rename the core file", "error", err)
		}
	}
}

// addedOutput names files that come back whatever the job says of its output.
func (a *activation) addedOutput() []string {
	if a.work.coreFile == "" {
		return nil
	}
	return []string{a.work.coreFile}
}
