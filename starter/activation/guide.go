package activation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/sandbox"
	"podstarter/sandbox/commonfiles"
	"podstarter/sandbox/jobfiles"
	"podstarter/starter/catalogs"
	"podstarter/starter/failure"
	"podstarter/starter/submitside"
	"podstarter/starter/transfer"
)

// isDataSlot says whether this activation runs no job and keeps common files for others. A
// new data slot's ad may not say so yet (src/condor_startd.V6/command.cpp:
// command_data_slot), but no process of a job has a number below 0, as what stands for its
// common files has (src/condor_schedd.V6/cxfer.cpp).
func (a *activation) isDataSlot() bool {
	return a.job.Info.Proc < 0 || a.job.Machine != nil && a.job.Machine.BoolOr("IsDataSlot", false)
}

// keep fetches common files and keeps them for as long as the shadow wants, which ends this
// starter when no job needs them any more. Anything else that it says is a mistake: a data slot
// has no container to run a job in.
func (a *activation) keep(ctx context.Context) error {
	if err := a.clearUser(ctx); err != nil {
		return err
	}
	guide := a.guide()
	if a.offersCommonFiles() {
		guide.Common, guide.Await = a.catalogs().ForDataSlot(), a.peers.side.Await
	}
	if err := a.converse(ctx, guide); err != nil {
		return err
	}
	return failure.New(shadow.VacateStarterError, 0, errors.New("the shadow of a data slot, which runs no jobs, has no more for it to do"))
}

// guide asks the shadow what to do next.
func (a *activation) guide() submitside.Guide {
	return submitside.Guide{Shadow: a.peers.shadow, Diagnose: a.sitePrograms().Diagnose, Silent: a.opt.Settings.Condor.Silent, Log: a.log}
}

// offersCommonFiles says whether this activation can keep or give common files. The access
// point has to be known, or nobody could tell whose they are.
func (a *activation) offersCommonFiles() bool {
	return a.opt.Settings.CommonFiles.Offered && a.opt.SubmitHost != ""
}

// guideSetup is the conversation before the transfer.
func (a *activation) guideSetup(ctx context.Context) error {
	guide := a.guide()
	if a.offersCommonFiles() {
		guide.Common, guide.Await = a.catalogs().ForJob(), a.peers.side.Await
	}
	return a.converse(ctx, guide)
}

// abortTime is how long the order to end may take after the shadow gave the job up.
const abortTime = 5 * time.Second

// converse has the conversation before the transfer. A shadow that gives the job up there
// knows why, and has already ordered its end. An error from here would take the place of its
// reason (src/condor_shadow.V6.1/pseudo_ops.cpp:handle_wiring_failure).
func (a *activation) converse(ctx context.Context, guide submitside.Guide) error {
	err := guide.Converse(ctx, submitside.AboutSetup)
	if !errors.Is(err, submitside.ErrAbort) {
		return err
	}
	a.log.Info(job.LineSkipped(a.job.Info))
	if ended := submitside.Pause(ctx, abortTime); ended != nil {
		return fmt.Errorf("%w: %w", err, ended)
	}
	return err
}

// catalogs are the common files of this activation.
func (a *activation) catalogs() *catalogs.Catalogs {
	common := a.opt.Settings.CommonFiles
	return catalogs.New(catalogs.Options{
		User: a.job.Info.User, SubmitHost: a.opt.SubmitHost, Execute: a.opt.Settings.Condor.Execute, Sandbox: a.job.Sandbox,
		Executable: jobfiles.Read(a.job.Ad).Executable, Policy: commonfiles.Policy{Link: common.Links, Copy: common.Copies}, Digests: common.Digests, Machine: a.job.Machine, Secrets: a.job.Secrets,
		Pretend: a.job.Ad.BoolOr("ReportMappingFailure", false), Startd: a.peers.startd, TellStartd: a.peers.reports.InformStartd,
		Fetch: a.fetchCommon, Kept: func() { a.opt.rest().GiveBack() }, Log: a.log,
	})
}

func (a *activation) fetchCommon(ctx context.Context, from catalogs.Source, into *sandbox.Staging) error {
	o := a.transferOptions()
	return transfer.Common(ctx, o, into, transfer.Peer{Dial: a.peers.side.At(from.Socket, o.Client), Key: from.Key})
}
