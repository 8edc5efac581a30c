package activation

import (
	"context"
	"errors"
	"fmt"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/condor/version"
	"podstarter/internal/cedar"
	"podstarter/starter/failure"
)

// register learns which job this is, on which slot, and makes this starter
// known to the shadow.
func (a *activation) register(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	var err error
	if a.ad, err = a.shadow.GetJobInfo(ctx); err != nil {
		return fmt.Errorf("ask the shadow for the job: %w", err)
	}
	slot, err := a.startd.ReadMachine(ctx)
	if err != nil {
		return fmt.Errorf("read the slot's ad from the startd: %w", err)
	}
	a.machine, a.secrets = slot.Ad, slot.Secrets
	if slot.Overlay != nil {
		a.ad.Update(slot.Overlay)
		a.overlay = slot.Overlay
	}

	a.desk.Know(a.ad, a.version())

	domain := a.set.Condor.FilesystemDomain
	if a.info, err = job.Read(a.ad, domain); err != nil {
		return fmt.Errorf("the shadow sent a job that cannot be run: %w", err)
	}
	if peer, err := version.Parse(a.info.ShadowVersion); err != nil {
		a.log.Warn("The shadow's version is not known; calls that not every shadow has are not made", "error", err)
	} else {
		a.shadow.SetVersion(peer)
	}
	a.log.Info(job.LineShadow(a.info.ShadowAddress))
	a.log.Info("Submitting machine is \"" + a.opt.SubmitHost + "\"")

	if err := a.shadow.RegisterStarterInfo(ctx, a.introduce(true)); err != nil {
		return fmt.Errorf("register with the shadow: %w", err)
	}
	a.submit.Know(a.ad, a.info, a.introduce(false))
	if err := a.openSessions(ctx); err != nil {
		return err
	}
	return a.refuseUnsupported()
}

// version is the version of HTCondor that this starter speaks: that of the
// startd that runs it, as with stock, where both come from one package. The
// shadow picks its protocol by it.
func (a *activation) version() string {
	return a.machine.StringOr("CondorVersion", "")
}

// refuseUnsupported ends jobs that ask for what is not done here before
// anything is moved for them.
func (a *activation) refuseUnsupported() error {
	if err := job.CheckUniverse(a.info.Universe); err != nil {
		return failure.New(shadow.HoldFailedToCreateProcess, 0, err)
	}
	return nil
}

// openSessions makes the sessions on which the shadow may command this starter
// and on which files are transferred (jic_shadow.cpp:initMatchSecuritySession).
func (a *activation) openSessions(ctx context.Context) error {
	info, err := a.shadow.GetSecSessionInfo(ctx)
	if callErr := (*shadow.CallError)(nil); errors.As(err, &callErr) {
		a.log.Warn("The shadow offers no sessions; files cannot be transferred", "error", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("ask the shadow for its sessions: %w", err)
	}
	reconnect, err := info.Reconnect.Import(cedar.Daemon)
	if err != nil {
		return fmt.Errorf("take over the shadow's session: %w", err)
	}
	if err := a.sessions.Add(reconnect); err != nil {
		return fmt.Errorf("take over the shadow's session: %w", err)
	}
	a.claimSession = reconnect
	return a.submit.Meet(info)
}

// introduce says who this starter is, for a shadow that begins and for those
// that come back.
func (a *activation) introduce(withSlot bool) *classads.Ad {
	ad := job.Registration(job.Starter{
		Address: a.address, Scratch: a.scratchPath(),
		Version: a.version(), Platform: a.machine.StringOr("CondorPlatform", ""),
		Machine:          a.machine.StringOr("Machine", ""),
		UIDDomain:        a.set.Condor.UIDDomain,
		FilesystemDomain: a.set.Condor.FilesystemDomain,
		Now:              now().Unix(),
	}, a.ad, a.machine, withSlot)
	// A shadow that comes back proves that it may by the claim's key.
	ad.SetBool("HasReconnect", a.shadow.Encrypted())
	return ad
}
