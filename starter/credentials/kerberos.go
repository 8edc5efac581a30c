package credentials

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"podstarter/condor/shadow"
	"podstarter/internal/atomicfile"
	"podstarter/starter/failure"
)

// kerberos is where a site keeps its users' Kerberos credentials: a directory of
// the pilot that only root enters, in which a credential monitor turns what a
// user stored (name.cred) into tickets (name.cc) and renews those.
type kerberos struct {
	dir string
	// user is the account: of the files, and, with the domain, of the credential that the
	// shadow is asked for.
	user, domain string
	// fresh is the age up to which tickets are used without asking the shadow;
	// negative: any age (SEC_CREDENTIAL_REFRESH_INTERVAL).
	fresh time.Duration
	// patience bounds the wait for the monitor (CREDD_POLLING_TIMEOUT).
	patience time.Duration

	copied time.Time // of the tickets that the job has
}

const (
	// maxTickets bounds a ticket cache; some kilobytes are usual.
	maxTickets = 16 << 20
	// ticketPoll is the time between two looks for the monitor's tickets.
	ticketPoll = 200 * time.Millisecond
)

func (k *kerberos) tickets() string { return filepath.Join(k.dir, k.user+".cc") }

// fetchTickets gives the job its user's Kerberos tickets, if it asks for them
// (jic_shadow.cpp:initUserCredentials).
func (c *Keeper) fetchTickets(ctx context.Context) error {
	if !c.Job.BoolOr("SendCredential", false) {
		return nil
	}
	c.Log.Info("Job has SendCredential=true; Attempting to fetch Kerberos credentials")
	k, err := c.kerberos()
	if err == nil {
		err = c.obtainTickets(ctx, k)
	}
	if err == nil {
		err = c.copyTickets(k)
	}
	if err != nil {
		return failure.New(shadow.VacateStarterError, 0, fmt.Errorf("Starter failed to initialize: %w", err)) //nolint:staticcheck // stock's sentence
	}
	c.tickets = filepath.Join(c.Sandbox.Scratch(), k.user+".cc")
	c.Log.Info("CREDS: configuring job to use KRB5CCNAME " + c.tickets)
	if c.Knobs.Refresh > 0 {
		c.Log.Info(fmt.Sprintf("CREDS: will check credential again in %d seconds", int64(c.Knobs.Refresh.Seconds())))
	}
	c.renew(func(context.Context) error { return c.copyTickets(k) })
	return nil
}

// kerberos reads the knobs. As under stock, the files are named after the account that
// the job would run as there, and the shadow is asked for the credential of that name in
// this site's domain (jic_shadow.cpp:initUserCredentials).
func (c *Keeper) kerberos() (*kerberos, error) {
	knobs := c.Knobs
	k := &kerberos{dir: knobs.KerberosDir, fresh: knobs.KerberosFresh, patience: knobs.KerberosPatience, user: c.Account, domain: knobs.UIDDomain}
	if k.dir == "" {
		return nil, errors.New("the job wants a Kerberos credential (SendCredential), but SEC_CREDENTIAL_DIRECTORY_KRB is not defined on this execution point")
	}
	// The name may be what the access point says of the job's owner.
	if k.user == "" || k.user == "root" || strings.HasPrefix(k.user, ".") || strings.ContainsAny(k.user, "@/\x00") {
		return nil, fmt.Errorf("the account %.100q cannot be the name of a file with Kerberos tickets", k.user)
	}
	return k, nil
}

// obtainTickets has tickets made unless there are some that are fresh enough.
func (c *Keeper) obtainTickets(ctx context.Context, k *kerberos) error {
	// With this file the monitor would delete an active account's files
	// (condor_utils/credmon_interface.cpp:credmon_clear_mark).
	_ = os.Remove(filepath.Join(k.dir, k.user+".mark"))
	st, err := os.Stat(k.tickets())
	if err == nil && (k.fresh < 0 || time.Since(st.ModTime()) < k.fresh) {
		return nil
	}
	data, err := c.Kerberos(ctx, k.user, k.domain)
	if err != nil {
		return err
	}
	if err := k.store(data); err != nil {
		return err
	}
	return k.await(ctx)
}

// store leaves the credential for the monitor, whole or not at all. The
// directory is the pilot's own; no payload sees it.
func (k *kerberos) store(data []byte) error {
	dir, err := os.OpenRoot(k.dir)
	if err == nil {
		err = errors.Join(atomicfile.Replace(dir, k.user+".cred", data, atomicfile.Options{Mode: 0o600}), dir.Close())
	}
	if err != nil {
		return fmt.Errorf("store a Kerberos credential for the credential monitor: %w", err)
	}
	return nil
}

// await wakes the monitor and waits until there are tickets
// (condor_utils/credmon_interface.cpp:credmon_kick_and_poll_for_ccfile). Older
// tickets count as well, as in stock; what the monitor makes of the new
// credential follows with the next renewal.
func (k *kerberos) await(ctx context.Context) error {
	if pid, err := k.monitor(); err == nil {
		_ = syscall.Kill(pid, syscall.SIGHUP) // if it is gone, the wait ends at its limit
	}
	ctx, cancel := context.WithTimeout(ctx, k.patience)
	defer cancel()
	tick := time.NewTicker(ticketPoll)
	defer tick.Stop()
	for {
		if _, err := os.Stat(k.tickets()); err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the credential monitor made no Kerberos tickets %s within %s; does one run in the pilot?", k.tickets(), k.patience)
		}
	}
}

// monitor is the process id of the credential monitor.
func (k *kerberos) monitor() (int, error) {
	f, err := os.Open(filepath.Join(k.dir, "pid"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 256))
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err == nil && pid <= 1 {
		err = fmt.Errorf("%d cannot be the process id of a credential monitor", pid)
	}
	return pid, err
}

// copyTickets gives the job the tickets as they are now, if they have changed
// (jic_shadow.cpp:refreshSandboxCredentialsKRB).
func (c *Keeper) copyTickets(k *kerberos) error {
	f, err := os.Open(k.tickets())
	if err != nil {
		return fmt.Errorf("look for the user's Kerberos tickets: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return fmt.Errorf("look at the user's Kerberos tickets: %w", err)
	}
	if st.ModTime().Equal(k.copied) {
		return nil
	}
	if st.Size() > maxTickets {
		return fmt.Errorf("the Kerberos tickets %s have %d bytes, at most %d are taken", k.tickets(), st.Size(), maxTickets)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxTickets))
	if err != nil {
		return fmt.Errorf("read the user's Kerberos tickets: %w", err)
	}
	if err := c.Sandbox.WriteFile(k.user+".cc", data, 0o600); err != nil {
		return err
	}
	k.copied = st.ModTime()
	return nil
}
