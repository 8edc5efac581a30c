package activation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/internal/cedar"
	"podstarter/sandbox"
	"podstarter/starter/credentials"
	"podstarter/starter/failure"
	"podstarter/starter/settings"
)

// prepare takes a payload slot, so that the payload's user is known, and makes
// the sandbox for that user.
func (a *activation) prepare(ctx context.Context) error {
	if err := a.openHooks(); err != nil {
		return err
	}
	var err error
	if a.lease, err = a.backend.Lease(ctx); err != nil {
		return failure.OfBinding(err)
	}
	uid, gid := a.lease.Owner()
	name, home := accountOf(uid)
	a.home = home
	if home != "" {
		a.ad.SetString("OSHomeDir", home)
	}
	if name == "" {
		name = fmt.Sprintf("uid %d", uid)
	}
	a.log.Info("Running job as user " + name)

	condor, err := settings.CondorOwner(a.cfg)
	if err != nil {
		return err
	}
	if err := a.removeTemporary(ctx, uid); err != nil {
		return failure.New(shadow.VacateScratchDirError, 0, err)
	}
	a.sandbox, err = sandbox.Create(ctx, sandbox.Options{
		Execute: a.set.Condor.Execute, Scratch: a.set.ScratchDir, PID: os.Getpid(), Nested: a.set.Condor.NestedScratch,
		Mode:   sandbox.Permissions(a.set.Condor.ExecDirPermissions),
		Condor: condor, Payload: a.owner(uid, gid), Log: a.log,
	})
	if err != nil {
		return failure.New(shadow.VacateScratchDirError, 0, err)
	}
	a.reports.Place(a.sandbox.Scratch())
	a.openJobLog()
	job.Localize(a.ad, a.info, a.sandbox.Scratch())
	if home != "" {
		a.ad.SetString("OSHomeDir", home) // as stock (jic_shadow.cpp:initUserPriv)
	}
	if err := a.bringJobWrapper(); err != nil {
		return err
	}
	if err := a.writeAds(); err != nil {
		return failure.New(shadow.VacateScratchDirError, 0, err)
	}
	a.openIOProxy()
	provisioned := job.Provisioned(a.machine)
	a.reports.Tell(ctx, provisioned.Clone())
	a.updateHook(ctx, provisioned)
	return a.openCredentials(ctx)
}

// owner is the payload's user for the sandbox; a starter without root's rights
// has no other user than its own.
func (a *activation) owner(uid, gid int) sandbox.Owner {
	if os.Getuid() != 0 {
		return sandbox.Self()
	}
	return sandbox.Owner{UID: uid, GID: gid}
}

// scratchPath is where the sandbox is, or will be.
func (a *activation) scratchPath() string {
	in := a.set.Condor.Execute
	if a.set.ScratchDir != "" {
		in = a.set.ScratchDir
	}
	dir := filepath.Join(in, fmt.Sprintf("dir_%d", os.Getpid()))
	if a.set.Condor.NestedScratch {
		return filepath.Join(dir, "scratch")
	}
	return dir
}

// writeAds leaves the ads of job and slot in the sandbox, without what only
// daemons may know (starter.cpp:WriteAdFiles).
func (a *activation) writeAds() error {
	ads := []struct {
		name string
		ad   *classads.Ad
	}{{job.JobAdFile, a.ad}, {job.MachineAdFile, a.machine}, {".execution_overlay.ad", a.overlay}}
	for _, file := range ads {
		if file.ad == nil || file.ad.Len() == 0 {
			continue
		}
		if err := a.sandbox.WriteFile(file.name, []byte(public(file.ad).FormatOld()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// public is an ad without the secrets that daemons keep between themselves
// (HTCondor src/condor_utils/compat_classad.cpp:ClassAdAttributeIsPrivateAny).
func public(ad *classads.Ad) *classads.Ad {
	shown := classads.NewAd()
	for name, value := range ad.All() {
		switch lower := strings.ToLower(name); {
		case strings.HasPrefix(lower, "_condor_priv"):
		case lower == "capability", lower == "childclaimids", lower == "claimid",
			lower == "claimidlist", lower == "claimids", lower == "transferkey":
		default:
			shown.Insert(name, value)
		}
	}
	return shown
}

// openCredentials fetches what the job is given of its user's secrets, and is ready for
// the proxies that the shadow will bring.
func (a *activation) openCredentials(ctx context.Context) error {
	if a.info.FileTransfer {
		a.proxies.Open(a.sandbox, job.ProxyName(a.ad))
	} else {
		a.proxies.Open(nil, "")
	}
	a.creds = credentials.New(credentials.Options{
		Shadow: a.shadow, Sandbox: a.sandbox, Job: a.ad, Info: a.info, Knobs: a.set.Condor.Credentials,
		Kerberos: a.fetchKerberos, ProxyExpiry: a.proxyExpiry, Log: a.log,
	})
	return a.creds.Fetch(ctx)
}

// fetchKerberos asks the shadow for a credential.
func (a *activation) fetchKerberos(ctx context.Context, owner, domain string) ([]byte, error) {
	if a.claimSession == nil {
		return nil, errors.New("the shadow gave no session on which to fetch a Kerberos credential; is SEC_ENABLE_MATCH_PASSWORD_AUTHENTICATION off?")
	}
	client := &cedar.Client{Version: a.version(), Own: a.address, Name: "STARTER " + a.address}
	return shadow.FetchKerberos(ctx, client, a.info.ShadowAddress, a.claimSession, owner, domain)
}

func (a *activation) proxyExpiry() time.Time {
	expires, err := job.ProxyExpiry(a.ad, a.cfg, now())
	if err != nil {
		a.log.Warn("A knob about X.509 proxies is not understood, its default holds", "error", err)
	}
	return expires
}
