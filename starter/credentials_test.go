package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/internal/cedar"
	"podstarter/sandbox"
	"podstarter/starter/orders"
)

// play is what a shadow does with one call; it takes the call's fields and
// answers.
type play func(*cedar.Stream) error

// withShadow gives the activation a shadow on an encrypted connection that plays
// its part call by call, and a sandbox.
func withShadow(t *testing.T, a *activation, plays <-chan play) {
	t.Helper()
	const activate = 444
	failed := make(chan error, 1)
	addr, session := commandPort(t, a, func(s *cedar.Server) {
		s.Handle(activate, cedar.Daemon, func(_ context.Context, c *cedar.Call) error {
			if _, err := c.Stream.GetInt(); err != nil { // the startd's part
				return err
			}
			if err := c.Stream.EndOfMessage(); err != nil {
				return err
			}
			for p := range plays {
				if err := p(c.Stream); err != nil {
					failed <- err
					return err
				}
			}
			return nil
		})
	})
	client := cedar.Client{Version: testVersion}
	s, err := client.Command(t.Context(), addr, activate, session)
	if err != nil {
		t.Fatal(err)
	}
	s.PutInt(1)
	if err := s.EndMessage(); err != nil {
		t.Fatal(err)
	}
	a.shadow = shadow.New(s, slog.New(slog.DiscardHandler))
	if a.orders == nil {
		a.orders = orders.New(a.log)
	}
	a.meetPeers()
	t.Cleanup(func() {
		a.shadow.Close()
		select {
		case err := <-failed:
			t.Errorf("the shadow: %v", err)
		default:
		}
	})
	a.sandbox, err = sandbox.Create(t.Context(), sandbox.Options{Execute: t.TempDir(), PID: os.Getpid(), Nested: true, Payload: sandbox.Self(), Condor: sandbox.Self()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.sandbox.Remove(context.Background()) })
	a.ad = classads.NewAd()
	a.useKnobs(config.FromMap(nil))
}

// takeCall takes a call that has one string as its field.
func takeCall(s *cedar.Stream, number int64) error {
	n, err := s.GetInt()
	if err != nil {
		return err
	}
	if n != number {
		return fmt.Errorf("call %d, want %d", n, number)
	}
	if _, err := s.GetString(); err != nil {
		return err
	}
	return s.EndOfMessage()
}

// giveTokens answers getcreds. A nil map is a shadow that has none to give.
func giveTokens(tokens map[string]string) play {
	return func(s *cedar.Stream) error {
		if err := takeCall(s, 302); err != nil {
			return err
		}
		for service, token := range tokens {
			ad := classads.NewAd()
			ad.SetString("Service", service)
			ad.SetString("Data", base64.StdEncoding.EncodeToString([]byte(token)))
			s.PutInt(1)
			s.PutAd(ad)
		}
		last := int64(0)
		if tokens == nil {
			last = -1
		}
		s.PutInt(last)
		return s.EndMessage()
	}
}

// filesIn lists a directory: "name mode contents".
func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		info, errInfo := e.Info()
		if err := errors.Join(err, errInfo); err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %o %s", e.Name(), info.Mode().Perm(), data))
	}
	return all
}

func TestTokens(t *testing.T) {
	a := &activation{}
	plays := make(chan play, 4)
	withShadow(t, a, plays)
	a.ad.SetString("OAuthServicesNeeded", "scitokens, box*work scitokens")
	plays <- giveTokens(map[string]string{"scitokens": "one", "box*work": "two", "unasked": "three"})
	if err := a.fetchCredentials(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer a.stopRenewing()
	dir := filepath.Join(a.sandbox.Scratch(), ".condor_creds")
	if a.creds.dir != dir {
		t.Errorf("the job is told of %q, want %q", a.creds.dir, dir)
	}
	if diff := cmp.Diff([]string{"box_work.use 600 two", "scitokens.use 600 one"}, filesIn(t, dir)); diff != "" {
		t.Error(diff)
	}
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o755 {
		t.Errorf("the directory: %v, %v", st.Mode(), err)
	}
	// What the job holds open of the old one stays whole.
	plays <- giveTokens(map[string]string{"scitokens": "new", "box*work": "newer"})
	if err := a.fetchTokens(t.Context(), []string{"scitokens", "box*work"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"box_work.use 600 newer", "scitokens.use 600 new"}, filesIn(t, dir)); diff != "" {
		t.Error(diff)
	}
	close(plays)
}

func TestTokensThatAreNotThere(t *testing.T) {
	for _, tt := range []struct {
		name   string
		tokens map[string]string
		want   string
	}{
		{"refused", nil, "the shadow answers -1"},
		{"another one", map[string]string{"other": "x"}, "Shadow failed to provide credential for service scitokens"},
		{"empty", map[string]string{"scitokens": ""}, "cannot be decoded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := &activation{}
			plays := make(chan play, 1)
			withShadow(t, a, plays)
			a.ad.SetString("OAuthServicesNeeded", "scitokens")
			plays <- giveTokens(tt.tokens)
			close(plays)
			err := a.fetchCredentials(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("the error is %v, want one about %q", err, tt.want)
			}
			if f := (*job.Failure)(nil); !errors.As(err, &f) || f.Code != shadow.VacateStarterError {
				t.Errorf("the error %v does not give the job back", err)
			}
			if a.creds.dir != "" {
				t.Errorf("the job is told of %q", a.creds.dir)
			}
		})
	}
}

// A job that asks for no token causes no call; one that asks for none of them by
// an empty list causes one, as with stock.
func TestTokensNotAskedFor(t *testing.T) {
	a := &activation{}
	plays := make(chan play, 1)
	withShadow(t, a, plays)
	if err := a.fetchCredentials(t.Context()); err != nil || a.creds.dir != "" {
		t.Errorf("without the attribute: %v, %q", err, a.creds.dir)
	}
	a.ad.SetString("OAuthServicesNeeded", "")
	plays <- giveTokens(map[string]string{})
	close(plays)
	if err := a.fetchCredentials(t.Context()); err != nil || a.creds.dir == "" {
		t.Errorf("with an empty one: %v, %q", err, a.creds.dir)
	}
	a.stopRenewing()
	if _, err := os.Stat(filepath.Join(a.sandbox.Scratch(), ".condor_creds")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory for no tokens: %v", err)
	}
}

// Tokens are fetched again while the job runs, whatever became of the time
// before, and not once more after the last word.
func TestTokensAreRenewed(t *testing.T) {
	a := &activation{log: slog.New(slog.DiscardHandler)}
	calls := make(chan struct{})
	a.renew(t.Context(), time.Millisecond, func(ctx context.Context) error {
		select {
		case calls <- struct{}{}:
		case <-ctx.Done():
		}
		return errors.New("no luck this time")
	})
	for range 3 {
		<-calls
	}
	a.stopRenewing()
	select {
	case <-calls:
		t.Error("renewed after the end")
	default:
	}
	a.stopRenewing() // twice is no harm
}

// The payload owns the directory and may put there what it likes: nothing of it
// leads out of the sandbox.
func TestTokensStayInTheSandbox(t *testing.T) {
	a := &activation{}
	plays := make(chan play, 1)
	withShadow(t, a, plays)
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(a.sandbox.Scratch(), ".condor_creds")); err != nil {
		t.Fatal(err)
	}
	plays <- giveTokens(map[string]string{"scitokens": "one"})
	close(plays)
	if err := a.fetchTokens(t.Context(), []string{"scitokens"}); err == nil {
		t.Error("the link is taken for the directory")
	}
	if got := filesIn(t, outside); len(got) != 0 {
		t.Errorf("outside of the sandbox: %v", got)
	}
}
