package credentials

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"time"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/rescue"
	"podstarter/starter/failure"
	"podstarter/starter/settings"
)

// tokensDir is where the job finds its tokens, below the sandbox
// (jic_shadow.cpp:refreshSandboxCredentialsOAuth).
const tokensDir = ".condor_creds"

// Shadow gives the secrets of the job's user.
type Shadow interface {
	GetCreds(ctx context.Context, plain bool) ([]shadow.Credential, error)
	GetDelegatedProxy(ctx context.Context, source string, expires time.Time) ([]byte, error)
}

// Sandbox is where the job finds them, as the payload's files. They go with it.
type Sandbox interface {
	Scratch() string
	Mkdir(name string, mode fs.FileMode) error
	WriteFile(name string, data []byte, mode fs.FileMode) error
}

// Options are what a [Keeper] works with.
type Options struct {
	Shadow  Shadow
	Sandbox Sandbox
	Job     *classads.Ad
	Info    job.Info
	Knobs   settings.Credentials
	// Account is whose Kerberos tickets the job gets; see [job.UnixAccount].
	Account string
	// Kerberos asks the shadow for the credential of a user in a domain.
	Kerberos func(ctx context.Context, user, domain string) ([]byte, error)
	// ProxyExpiry says when an X.509 proxy that is delegated now shall expire; the zero
	// time: when the user's own does.
	ProxyExpiry func() time.Time
	Log         *slog.Logger
}

// Keeper gives the job the secrets that it asks for and renews them. Its methods are
// for one goroutine; the renewals are goroutines of their own. A nil Keeper has nothing.
type Keeper struct {
	Options
	tokens, tickets, proxy string // paths; "" if the job asked for none

	ctx     context.Context // of the renewals
	stop    context.CancelFunc
	renewal rescue.Group
}

// New returns a keeper that has fetched nothing yet.
func New(o Options) *Keeper {
	k := &Keeper{Options: o}
	k.ctx, k.stop = context.WithCancel(context.Background())
	return k
}

// Tokens is the path of the directory with the job's tokens; empty if it has none.
func (k *Keeper) Tokens() string {
	if k == nil {
		return ""
	}
	return k.tokens
}

// Tickets is the path of the job's Kerberos tickets; empty if it has none.
func (k *Keeper) Tickets() string {
	if k == nil {
		return ""
	}
	return k.tickets
}

// Proxy is the path of the X.509 proxy that the shadow delegates to a job without file
// transfer; empty if it has none.
func (k *Keeper) Proxy() string {
	if k == nil {
		return ""
	}
	return k.proxy
}

// Fetch brings in what the job needs before its input files are fetched, and has it
// renewed until [Keeper.Stop] (jic_shadow.cpp:initUserCredentials).
func (k *Keeper) Fetch(ctx context.Context) error {
	if services, wanted := job.Services(k.Job); wanted {
		if err := k.fetchAllTokens(ctx, services); err != nil {
			return err
		}
	}
	return k.fetchTickets(ctx)
}

// fetchAllTokens fetches the tokens for the first time, and has them renewed.
func (k *Keeper) fetchAllTokens(ctx context.Context, services []string) error {
	k.Log.Info(fmt.Sprintf("initUserCredentials: job needs OAuth services %v", services))
	if err := k.fetchTokens(context.WithoutCancel(ctx), services); err != nil {
		return failure.New(shadow.VacateStarterError, 0, fmt.Errorf("Starter failed to initialize: %w", err)) //nolint:staticcheck // stock's sentence
	}
	k.tokens = filepath.Join(k.Sandbox.Scratch(), tokensDir)
	k.renew(func(ctx context.Context) error { return k.fetchTokens(ctx, services) })
	return nil
}

// renew repeats do every SEC_CREDENTIAL_REFRESH seconds until Stop. A failure is only
// logged: what the job has may be good for longer, and a shadow without the credential
// holds the job by itself.
func (k *Keeper) renew(do func(context.Context) error) {
	if k.Knobs.Refresh <= 0 {
		k.Log.Info("CREDS: cred refresh is DISABLED.")
		return
	}
	k.renewal.Go(func() {
		tick := time.NewTicker(k.Knobs.Refresh)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-k.ctx.Done():
				return
			}
			if err := do(k.ctx); err != nil && k.ctx.Err() == nil {
				k.Log.Warn("The job's credentials are not renewed", "error", err)
			}
		}
	})
}

// Stop ends the renewals and waits for them: nothing is written into a sandbox that
// is being removed, and nothing asked of a shadow that has heard the last word. It may
// be called twice.
func (k *Keeper) Stop() {
	if k == nil {
		return
	}
	k.stop()
	k.renewal.Wait()
}

// fetchTokens asks the shadow for the tokens and replaces each older one. A job
// reads a whole token at any time.
func (k *Keeper) fetchTokens(ctx context.Context, services []string) error {
	got, err := k.Shadow.GetCreds(ctx, k.Knobs.PlainTokens)
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
	if err := k.Sandbox.Mkdir(tokensDir, 0o755); err != nil {
		return fmt.Errorf("make the directory for the job's tokens: %w", err)
	}
	for _, service := range services {
		credential, ok := byName[service]
		if !ok {
			return errors.New("Shadow failed to provide credential for service " + service) //nolint:staticcheck // stock's sentence
		}
		name := filepath.Join(tokensDir, credential.FileName())
		if err := k.Sandbox.WriteFile(name, credential.Data(), 0o600); err != nil {
			return fmt.Errorf("store the token of service %s: %w", service, err)
		}
	}
	return nil
}
