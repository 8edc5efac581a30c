package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/config"
	"podstarter/internal/cedar"
)

// withTickets is an activation whose shadow has this credential for user@domain
// ("" for none), and a monitor that turns it into tickets in no time if works.
func withTickets(t *testing.T, credential string, works bool, knobs map[string]string) (*activation, string) {
	t.Helper()
	dir := t.TempDir()
	a := &activation{}
	plays := make(chan play)
	close(plays)
	withShadow(t, a, plays)
	addr, claim := commandPort(t, a, func(s *cedar.Server) {
		s.Handle(cedar.CreddGetCred, cedar.Daemon, func(_ context.Context, c *cedar.Call) error {
			user, err := c.Stream.GetString()
			if err != nil {
				return err
			}
			domain, err := c.Stream.GetString()
			if err != nil {
				return err
			}
			mode, err := c.Stream.GetInt()
			if err := errors.Join(err, c.Stream.EndOfMessage()); err != nil {
				return err
			}
			asked := user + "@" + domain
			if asked != a.info.User || mode != 0x20 || credential == "" {
				return errors.New("no such credential")
			}
			if works {
				if err := os.WriteFile(filepath.Join(dir, strings.TrimSuffix(asked, "@example.org")+".cc"), []byte("tickets of "+credential), 0o600); err != nil {
					return err
				}
			}
			c.Stream.PutInt(int64(len(credential)))
			c.Stream.PutBytes([]byte(credential))
			return c.Stream.EndMessage()
		})
	})
	all := map[string]string{"SEC_CREDENTIAL_DIRECTORY_KRB": dir, "UID_DOMAIN": "example.org", "CREDD_POLLING_TIMEOUT": "0"}
	for name, value := range knobs {
		all[name] = value
	}
	a.useKnobs(config.FromMap(all))
	a.claimSession, a.info.ShadowAddress, a.info.Owner, a.info.User = claim, addr, "alice", "alice@example.org"
	a.ad.SetBool("SendCredential", true)
	t.Cleanup(a.stopRenewing)
	return a, dir
}

func TestKerberos(t *testing.T) {
	a, dir := withTickets(t, "stored", true, nil)
	if err := a.fetchTickets(t.Context()); err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(a.sandbox.Scratch(), "alice.cc")
	if a.creds.cache != cache {
		t.Errorf("the job is told of %q, want %q", a.creds.cache, cache)
	}
	if diff := cmp.Diff([]string{"alice.cc 600 tickets of stored"}, filesIn(t, a.sandbox.Scratch())); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"alice.cc 600 tickets of stored", "alice.cred 600 stored"}, filesIn(t, dir)); diff != "" {
		t.Error(diff)
	}
	// The monitor renews them; the job gets what has changed.
	k, err := a.kerberos()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "alice.cc"), []byte("renewed"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := a.copyTickets(k); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"alice.cc 600 renewed"}, filesIn(t, a.sandbox.Scratch())); diff != "" {
		t.Error(diff)
	}
}

// Tickets that are there spare the shadow, unless they are older than the site
// wants them.
func TestKerberosTicketsThatAreThere(t *testing.T) {
	for _, tt := range []struct {
		name, interval string
		want           string
	}{
		{"by default", "", "old"},
		{"fresh", "36000", "old"},
		{"too old", "60", "tickets of stored"},
		{"always new ones", "0", "tickets of stored"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, dir := withTickets(t, "stored", true, map[string]string{"SEC_CREDENTIAL_REFRESH_INTERVAL": tt.interval})
			path := filepath.Join(dir, "alice.cc")
			hourAgo := time.Now().Add(-time.Hour)
			if err := errors.Join(os.WriteFile(path, []byte("old"), 0o600), os.Chtimes(path, hourAgo, hourAgo)); err != nil {
				t.Fatal(err)
			}
			if err := a.fetchTickets(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"alice.cc 600 " + tt.want}, filesIn(t, a.sandbox.Scratch())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestKerberosOfAnotherDomain: an owner is another user where the domain is another.
func TestKerberosOfAnotherDomain(t *testing.T) {
	for user, want := range map[string]string{
		"alice@example.org":   "alice.cc 600 the site's own",
		"alice@EXAMPLE.org":   "alice.cc 600 the site's own",
		"alice@elsewhere.org": "alice@elsewhere.org.cc 600 tickets of stored",
		"alice":               "",
		"alice@":              "",
		"alice@a/b":           "",
	} {
		t.Run(user, func(t *testing.T) {
			a, dir := withTickets(t, "stored", true, nil)
			a.info.User = user
			if err := os.WriteFile(filepath.Join(dir, "alice.cc"), []byte("the site's own"), 0o600); err != nil {
				t.Fatal(err)
			}
			err := a.fetchTickets(t.Context())
			if (err == nil) != (want != "") {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(want, strings.Join(filesIn(t, a.sandbox.Scratch()), "")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestKerberosThatCannotBe(t *testing.T) {
	for _, tt := range []struct {
		name, credential, owner string
		knobs                   map[string]string
		want                    string
	}{
		{"no directory", "stored", "alice", map[string]string{"SEC_CREDENTIAL_DIRECTORY_KRB": ""}, "SEC_CREDENTIAL_DIRECTORY_KRB is not defined"},
		{"nothing stored", "", "alice", nil, "condor_store_cred add-krb"},
		{"no monitor", "stored", "alice", nil, "made no Kerberos tickets"},
		{"a name that leads astray", "stored", "../alice", nil, "cannot be the name of a file"},
		{"no name", "stored", "", nil, "cannot be the name of a file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, _ := withTickets(t, tt.credential, false, tt.knobs)
			a.info.Owner = tt.owner
			err := a.fetchTickets(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the error is %v, want one about %q", err, tt.want)
			}
			if a.creds.cache != "" {
				t.Errorf("the job is told of %q", a.creds.cache)
			}
		})
	}
}
