package activation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/condor/version"
	"podstarter/internal/cedar"
)

// register learns which job this is, on which slot, and makes this starter
// known to the shadow.
func (a *activation) register(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	var err error
	if a.job.Ad, err = a.peers.shadow.GetJobInfo(ctx); err != nil {
		return fmt.Errorf("ask the shadow for the job: %w", err)
	}
	slot, err := a.peers.startd.ReadMachine(ctx)
	if err != nil {
		return fmt.Errorf("read the slot's ad from the startd: %w", err)
	}
	a.job.Machine, a.job.Secrets = slot.Ad, slot.Secrets
	if slot.Overlay != nil {
		a.job.Ad.Update(slot.Overlay)
		a.job.Overlay = slot.Overlay
	}
	a.job.Ad.Use(a.opt.Settings.Language)
	a.job.Machine.Use(a.opt.Settings.Language)
	a.desk.Know(a.job.Ad, a.job.Version())
	domain := a.opt.Settings.Condor.FilesystemDomain
	if a.job.Info, err = job.Read(a.job.Ad, domain); err != nil {
		return fmt.Errorf("the shadow sent a job that cannot be run: %w", err)
	}
	if peer, err := version.Parse(a.job.Info.ShadowVersion); err == nil {
		a.peers.shadow.SetVersion(peer)
	} else if !a.opt.Alone {
		a.log.Warn("The shadow's version is not known; only calls that every shadow knows are made", "error", err)
	}
	a.noteBegin()
	if a.opt.Alone {
		a.job.Info.Lease = 0 // nobody can come back
	} else {
		a.log.Info(job.LineShadow(a.job.Info.ShadowAddress))
		a.log.Info("Submitting machine is \"" + a.opt.SubmitHost + "\"")
	}
	if err := a.peers.shadow.RegisterStarterInfo(ctx, a.introduce(true)); err != nil {
		return fmt.Errorf("register with the shadow: %w", err)
	}
	a.peers.side.Know(a.job.Ad, a.job.Info, a.introduce(false))
	if !a.opt.Alone {
		if err := a.peers.openSessions(ctx, a.log); err != nil {
			return err
		}
	}
	if refused := job.Refused(a.job.Ad, a.job.Info, a.opt.Settings.InPod()); refused != nil {
		return refused // before any file is moved
	}
	return nil
}

// openSessions makes the sessions on which the shadow may command this starter
// and on which files are transferred (jic_shadow.cpp:initMatchSecuritySession).
func (p *peers) openSessions(ctx context.Context, log *slog.Logger) error {
	info, err := p.shadow.GetSecSessionInfo(ctx)
	if callErr := (*shadow.CallError)(nil); errors.As(err, &callErr) {
		log.Warn("The shadow offers no sessions; files are transferred only where nothing requires authentication", "error", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("ask the shadow for its sessions: %w", err)
	}
	reconnect, err := info.Reconnect.Import(cedar.Daemon)
	if err != nil {
		return fmt.Errorf("take over the shadow's session: %w", err)
	}
	if err := p.sessions.Add(reconnect); err != nil {
		return fmt.Errorf("take over the shadow's session: %w", err)
	}
	p.claim = reconnect
	return p.side.Meet(info)
}

// introduce describes this starter, to the first shadow and to those that come
// back.
func (a *activation) introduce(withSlot bool) *classads.Ad {
	ad := job.Registration(job.Starter{
		Address: a.peers.address.String(), Scratch: a.job.ScratchPath(),
		Version: a.job.Version(), Platform: a.job.Machine.StringOr("CondorPlatform", ""),
		Machine:          a.job.Machine.StringOr("Machine", ""),
		UIDDomain:        a.opt.Settings.Condor.UIDDomain,
		FilesystemDomain: a.opt.Settings.Condor.FilesystemDomain,
		Now:              time.Now().Unix(),
	}, a.job.Ad, a.job.Machine, withSlot)
	// A shadow that comes back proves by the claim's key that it may.
	ad.SetBool("HasReconnect", a.peers.shadow.Encrypted())
	return ad
}
