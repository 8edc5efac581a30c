package activation

import (
	"context"
	"errors"
	"fmt"
	"os"

	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/sandbox"
	"podstarter/starter/credentials"
	"podstarter/starter/failure"
	"podstarter/starter/hooks"
	"podstarter/starter/inventory"
	"podstarter/starter/ioproxy"
	"podstarter/starter/payloadrun"
	"podstarter/starter/settings"
)

// prepare takes a payload slot, so that the payload's user is known, and makes the sandbox
// for that user.
func (a *activation) prepare(ctx context.Context) error {
	if err := a.site.hooks.Open(a.sitePrograms()); err != nil {
		return err
	}
	wish, err := a.wish()
	if err == nil {
		a.lease, err = a.backend.Lease(ctx, wish)
	}
	if err != nil {
		return failure.OfBinding(err)
	}
	a.job.UID, a.job.GID = a.lease.Owner()
	var name string
	if name, a.job.Home = payloadrun.AccountOf(a.job.UID); name == "" {
		name = fmt.Sprintf("uid %d", a.job.UID)
	}
	a.log.Info("Running job as user " + name)
	if err := a.makeSandbox(ctx); err != nil {
		return err
	}
	a.site.hooks.Use(a.programs())
	if err := a.site.wrapper.Bring(a.sitePrograms()); err != nil {
		return err
	}
	if err := a.job.WriteAds(); err != nil {
		return failure.New(shadow.VacateScratchDirError, 0, err)
	}
	a.io.Open(ioproxy.Options{
		Job: a.job.Ad, UID: a.job.UID, Sandbox: a.job.Sandbox, Shadow: a.peers.shadow, Knobs: a.opt.Settings.Condor.Chirp, Log: a.log,
	})
	provisioned := job.Provisioned(a.job.Machine)
	a.peers.reports.Tell(ctx, provisioned.Clone())
	a.site.hooks.Update(ctx, provisioned)
	return a.openCredentials(ctx)
}

// wish is what the job will probably ask of the slot. A prepare hook may change the image yet.
// Only a container with the devices that the startd gave to the slot will do.
func (a *activation) wish() (payload.Wish, error) {
	w := payload.Wish{Owner: a.job.Info.User, FilesOnly: a.isDataSlot()}
	if w.FilesOnly {
		return w, nil
	}
	if !a.opt.Settings.InPod() {
		return w, nil
	}
	var err error
	if w.Only, err = a.opt.GPUs.Holders(a.job.Machine.StringOr("AssignedGPUs", "")); err != nil {
		return w, &payload.Verdict{Blame: payload.Site, Message: "No payload container is for this slot; docs/admin/gpus.md says how slots get the GPUs of containers", Err: err}
	}
	if chosen, err := a.opt.Settings.Images.Choose(a.job.Ad, a.job.Machine); err == nil && !chosen.Default() {
		w.Image = chosen.Image.String()
	}
	return w, nil
}

// sitePrograms are what the site's programs work with.
func (a *activation) sitePrograms() hooks.Options {
	return hooks.Options{Settings: a.opt.Settings, Programs: a.programs(), Job: &a.job, Shadow: a.peers.shadow, Log: a.log}
}

func (a *activation) makeSandbox(ctx context.Context) error {
	knobs := a.opt.Settings.Condor
	condor, err := settings.CondorOwner(a.opt.Settings.Config)
	if err != nil {
		return err
	}
	if err := a.removeTemporary(ctx); err != nil {
		return failure.New(shadow.VacateScratchDirError, 0, err)
	}
	a.job.Sandbox, err = sandbox.Create(ctx, sandbox.Options{
		Execute: knobs.Execute, Scratch: a.opt.Settings.ScratchDir, PID: os.Getpid(), Nested: knobs.NestedScratch, Keeps: a.isDataSlot() && a.opt.Settings.CommonFiles.Offered,
		Mode:   sandbox.Permissions(knobs.ExecDirPermissions),
		Condor: condor, Payload: a.job.FilesOwner(), Log: a.log,
	})
	if err != nil {
		return failure.New(shadow.VacateScratchDirError, 0, err)
	}
	a.peers.reports.Place(a.job.Sandbox.Scratch())
	openJobLog(a.opt, a.job.Sandbox)
	a.work.inventory = inventory.New(job.ManifestDir(a.job.Ad, a.job.Info), a.job.Sandbox, a.log)
	job.Localize(a.job.Ad, a.job.Info, a.job.Sandbox.Scratch())
	if a.job.Home != "" {
		a.job.Ad.SetString("OSHomeDir", a.job.Home) // as stock (jic_shadow.cpp:initUserPriv)
	}
	return nil
}

// given is what the job is given besides its ad and its place.
func (a *activation) given() payloadrun.Given {
	return payloadrun.Given{
		Tokens: a.creds.Tokens(), Tickets: a.creds.Tickets(), Proxy: a.creds.Proxy(),
		Chirp: a.io.Config(), WrapperWorks: a.site.wrapper.Works(), Run: a.work.run,
	}
}

// openCredentials fetches the secrets of its user that the job gets, and prepares for
// the proxies that the shadow will bring.
func (a *activation) openCredentials(ctx context.Context) error {
	if a.job.Info.FileTransfer {
		a.proxies.Open(a.job.Sandbox, job.ProxyName(a.job.Ad))
	} else {
		a.proxies.Open(nil, "")
	}
	a.creds = credentials.New(credentials.Options{
		Shadow: a.peers.shadow, Sandbox: a.job.Sandbox, Job: a.job.Ad, Info: a.job.Info, Knobs: a.opt.Settings.Condor.Credentials,
		Account: job.UnixAccount(a.job.Ad, a.job.Info, a.origin(), a.opt.Settings.Config),
		Kerberos: func(ctx context.Context, user, domain string) ([]byte, error) {
			return a.peers.fetchKerberos(ctx, &a.job, user, domain)
		},
		ProxyExpiry: a.job.ProxyExpiry, Log: a.log,
	})
	return a.creds.Fetch(ctx)
}

// origin is where the job comes from.
func (a *activation) origin() job.Origin {
	return job.Origin{Slot: a.opt.Slot, SubmitHost: a.opt.SubmitHost, Local: job.IsLocal(a.peers.inherited.Syscall.Conn().RemoteAddr())}
}

// fetchKerberos asks the shadow for a credential.
func (p *peers) fetchKerberos(ctx context.Context, j *payloadrun.Job, user, domain string) ([]byte, error) {
	if p.claim == nil {
		return nil, errors.New("the shadow gave no session on which to fetch a Kerberos credential; is SEC_ENABLE_MATCH_PASSWORD_AUTHENTICATION off?")
	}
	client := p.calls.Shadow(j.Version())
	return shadow.FetchKerberos(ctx, client, j.Info.ShadowAddress, p.claim, user, domain)
}
