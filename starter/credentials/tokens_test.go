package credentials_test

import (
	"context"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/condortest"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/internal/cedar"
	"podstarter/starter/credentials"
)

// tokens is an answer to getcreds with another token for a service.
func tokens(service, token string) condortest.Action {
	return condortest.Say(func(s *cedar.Stream) {
		ad := classads.NewAd()
		ad.SetString("Service", service)
		ad.SetString("Data", base64.StdEncoding.EncodeToString([]byte(token)))
		s.PutInt(1)
		s.PutAd(ad)
		s.PutInt(0)
	})
}

// TestTokens: a job gets the tokens that it asks for, and no others.
func TestTokens(t *testing.T) {
	sh := condortest.NewShadow(t, condortest.ShadowOptions{Tokens: map[string]string{"scitokens": "one", "box*work": "two", "unasked": "three"}})
	o := options(t, `OAuthServicesNeeded = "scitokens, box*work scitokens"`, nil)
	o.Shadow = connect(t, sh)
	k := newKeeper(t, o)
	must(t, k.Fetch(t.Context()))
	dir := filepath.Join(o.Sandbox.Scratch(), ".condor_creds")
	if k.Tokens() != dir {
		t.Errorf("the job is told of %q, want %q", k.Tokens(), dir)
	}
	if diff := cmp.Diff([]string{"box_work.use 600 two", "scitokens.use 600 one"}, filesIn(t, dir)); diff != "" {
		t.Error(diff)
	}
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o755 {
		t.Errorf("the directory: %v, %v", st.Mode(), err)
	}
	if k.Tickets() != "" || k.Proxy() != "" {
		t.Errorf("the job is told of %q and %q, and asked for neither", k.Tickets(), k.Proxy())
	}
}

// TestTokensAreRenewed: a new token takes the place of the old one. What the job holds
// open of the old one stays whole.
func TestTokensAreRenewed(t *testing.T) {
	sh := condortest.NewShadow(t, condortest.ShadowOptions{Tokens: map[string]string{"scitokens": "one"}})
	opened := make(chan struct{})
	sh.On("getcreds", 2, condortest.Stall(opened), condortest.Refuse(1)) // and the job is not told
	sh.On("getcreds", 3, tokens("scitokens", "new"))
	sh.On("getcreds", 4, condortest.Stall(nil)) // what the job finds stays the same
	o := options(t, `OAuthServicesNeeded = "scitokens"`, nil)
	o.Shadow, o.Knobs.Refresh = connect(t, sh), time.Millisecond
	told := telling{o.Sandbox, make(chan string)}
	o.Sandbox = told
	k := credentials.New(o)
	fetched := make(chan error, 1)
	go func() { fetched <- k.Fetch(t.Context()) }()
	if got := <-told.written; got != "one" {
		t.Errorf("the first token is %q", got)
	}
	path := filepath.Join(o.Sandbox.Scratch(), ".condor_creds", "scitokens.use")
	old, err := os.Open(path)
	must(t, err)
	defer old.Close()
	must(t, <-fetched)
	close(opened)
	if got := <-told.written; got != "new" {
		t.Errorf("the next token is %q", got)
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "new" {
		t.Errorf("the job finds %q, %v", data, err)
	}
	var text [8]byte
	if n, _ := old.Read(text[:]); string(text[:n]) != "one" {
		t.Errorf("who has the old one open reads %q", text[:n])
	}
	sh.Disconnect()
	k.Stop()
}

// TestTokensThatAreNotThere give the job back.
func TestTokensThatAreNotThere(t *testing.T) {
	for name, tt := range map[string]struct {
		tokens map[string]string
		want   string
	}{
		"refused":     {nil, "the shadow answers -1"},
		"another one": {map[string]string{"other": "x"}, "Shadow failed to provide credential for service scitokens"},
		"empty":       {map[string]string{"scitokens": ""}, "cannot be decoded"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t, `OAuthServicesNeeded = "scitokens"`, nil)
			o.Shadow = connect(t, condortest.NewShadow(t, condortest.ShadowOptions{Tokens: tt.tokens}))
			k := newKeeper(t, o)
			err := k.Fetch(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("the error is %v, want one about %q", err, tt.want)
			}
			if f := (*job.Failure)(nil); !errors.As(err, &f) || f.Code != shadow.VacateStarterError {
				t.Errorf("the error %v does not give the job back", err)
			}
			if k.Tokens() != "" {
				t.Errorf("the job is told of %q", k.Tokens())
			}
		})
	}
}

// TestTokensNotAskedFor: a job without the attribute causes no call. One with an empty
// list causes one, as with stock, and has a directory by name only.
func TestTokensNotAskedFor(t *testing.T) {
	sh := condortest.NewShadow(t, condortest.ShadowOptions{Tokens: map[string]string{"scitokens": "one"}})
	o := options(t, "", nil)
	o.Shadow = connect(t, sh)
	k := newKeeper(t, o)
	if err := k.Fetch(t.Context()); err != nil || k.Tokens() != "" {
		t.Errorf("without the attribute: %v, %q", err, k.Tokens())
	}
	o.Job.SetString("OAuthServicesNeeded", "")
	k = newKeeper(t, o)
	if err := k.Fetch(t.Context()); err != nil || k.Tokens() == "" {
		t.Errorf("with an empty one: %v, %q", err, k.Tokens())
	}
	if n := sh.Count(condortest.Call("getcreds")); n != 1 {
		t.Errorf("the shadow is asked %d times, want 1", n)
	}
	if _, err := os.Stat(k.Tokens()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory for no tokens: %v", err)
	}
}

// TestTokensStayInTheSandbox: the payload owns the sandbox and may put there what it
// likes. Nothing of it leads out.
func TestTokensStayInTheSandbox(t *testing.T) {
	o := options(t, `OAuthServicesNeeded = "scitokens"`, nil)
	o.Shadow = connect(t, condortest.NewShadow(t, condortest.ShadowOptions{Tokens: map[string]string{"scitokens": "one"}}))
	outside := t.TempDir()
	must(t, os.Symlink(outside, filepath.Join(o.Sandbox.Scratch(), ".condor_creds")))
	if err := newKeeper(t, o).Fetch(t.Context()); err == nil {
		t.Error("the link is taken for the directory")
	}
	if got := filesIn(t, outside); len(got) != 0 {
		t.Errorf("outside of the sandbox: %v", got)
	}
}

// counting is a shadow that counts calls.
type counting struct {
	calls atomic.Int32
	plain atomic.Bool
}

func (s *counting) GetCreds(_ context.Context, plain bool) ([]shadow.Credential, error) {
	s.plain.Store(plain)
	s.calls.Add(1)
	return []shadow.Credential{{Service: "scitokens"}}, nil
}

func (s *counting) GetDelegatedProxy(context.Context, string, time.Time) ([]byte, error) {
	return nil, errors.New("not in this test")
}

// noDisk takes all files.
type noDisk struct{}

func (noDisk) Scratch() string                             { return "/scratch" }
func (noDisk) Mkdir(string, fs.FileMode) error             { return nil }
func (noDisk) WriteFile(string, []byte, fs.FileMode) error { return nil }

// TestNeverRenewed: a site can switch renewals off.
func TestNeverRenewed(t *testing.T) {
	o := options(t, `OAuthServicesNeeded = "scitokens"`, map[string]string{"SEC_CREDENTIAL_REFRESH": "0", "ALLOW_OAUTH_WITHOUT_ENCRYPTION": "true"})
	synctest.Test(t, func(t *testing.T) {
		s := &counting{}
		o.Shadow, o.Sandbox = s, noDisk{}
		k := credentials.New(o)
		must(t, k.Fetch(t.Context()))
		time.Sleep(time.Hour)
		k.Stop()
		if n := s.calls.Load(); n != 1 {
			t.Errorf("the shadow is asked %d times, want 1", n)
		}
		if s.plain.Load() != (os.Getuid() != 0) {
			t.Errorf("tokens without encryption: %v", s.plain.Load())
		}
	})
}
