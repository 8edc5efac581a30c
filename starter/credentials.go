package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/rescue"
	"podstarter/starter/failure"
)

// credentialsDir is where the job finds its tokens, below the sandbox
// (jic_shadow.cpp:refreshSandboxCredentialsOAuth).
const credentialsDir = ".condor_creds"

// credentials are what the job is given of its user's secrets. All of it lies in
// the sandbox, as the payload's files, and goes with it.
type credentials struct {
	dir   string // of the tokens; "" if the job asked for none
	cache string // of Kerberos tickets; "" if the job asked for none
	proxy string // delegated by the shadow for a job without file transfer; "" if there is none

	stop    context.CancelFunc // of what renews them; nil if nothing does
	renewal rescue.Group
}

// fetchCredentials brings in what the job needs before its input files are
// fetched, and has it renewed for as long as the job is there
// (jic_shadow.cpp:initUserCredentials).
func (a *activation) fetchCredentials(ctx context.Context) error {
	if services, wanted := job.Services(a.ad); wanted {
		if err := a.fetchAllTokens(ctx, services); err != nil {
			return err
		}
	}
	return a.fetchTickets(ctx)
}

// fetchAllTokens is the first time that tokens are fetched.
func (a *activation) fetchAllTokens(ctx context.Context, services []string) error {
	a.log.Info(fmt.Sprintf("initUserCredentials: job needs OAuth services %v", services))
	if err := a.fetchTokens(context.WithoutCancel(ctx), services); err != nil {
		return failure.New(shadow.VacateStarterError, 0, fmt.Errorf("Starter failed to initialize: %w", err)) //nolint:staticcheck // stock's sentence
	}
	a.creds.dir = filepath.Join(a.sandbox.Scratch(), credentialsDir)
	a.renewEvery(ctx, func(ctx context.Context) error { return a.fetchTokens(ctx, services) })
	return nil
}

// renewEvery renews something as often as SEC_CREDENTIAL_REFRESH says.
func (a *activation) renewEvery(ctx context.Context, do func(context.Context) error) {
	every := a.set.Condor.Credentials.Refresh
	if every <= 0 {
		a.log.Info("CREDS: cred refresh is DISABLED.")
		return
	}
	a.renew(ctx, every, do)
}

// renew does something again and again until stopRenewing. The job is not told
// when it fails: what it has may be good for longer, and a shadow without the
// credential holds the job by itself.
func (a *activation) renew(ctx context.Context, every time.Duration, do func(context.Context) error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	before := a.creds.stop
	a.creds.stop = func() {
		if before != nil {
			before()
		}
		stop()
	}
	a.creds.renewal.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			if err := do(ctx); err != nil && ctx.Err() == nil {
				a.log.Warn("The job's credentials are not renewed", "error", err)
			}
		}
	})
}

// stopRenewing ends what renews the credentials and waits for it: nothing is
// written into a sandbox that is being removed, and nothing asked of a shadow
// that has heard the last word.
func (a *activation) stopRenewing() {
	if a.creds.stop != nil {
		a.creds.stop()
		a.creds.renewal.Wait()
	}
}

// fetchTokens asks the shadow for the tokens and puts each in the place of the
// one before. A job reads a whole one at any time.
func (a *activation) fetchTokens(ctx context.Context, services []string) error {
	got, err := a.shadow.GetCreds(ctx, a.set.Condor.Credentials.PlainTokens)
	if err != nil {
		return fmt.Errorf("fetch the job's tokens: %w", err)
	}
	byName := map[string]shadow.Credential{}
	for _, credential := range got {
		byName[credential.Service] = credential
	}
	if len(services) == 0 {
		return nil
	}
	if err := a.sandbox.Mkdir(credentialsDir, 0o755); err != nil {
		return fmt.Errorf("make the directory for the job's tokens: %w", err)
	}
	for _, service := range services {
		credential, ok := byName[service]
		if !ok {
			return errors.New("Shadow failed to provide credential for service " + service) //nolint:staticcheck // stock's sentence
		}
		name := filepath.Join(credentialsDir, credential.FileName())
		if err := a.sandbox.WriteFile(name, credential.Data(), 0o600); err != nil {
			return fmt.Errorf("store the token of service %s: %w", service, err)
		}
	}
	return nil
}
