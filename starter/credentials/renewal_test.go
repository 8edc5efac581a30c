package credentials

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/starter/settings"
)

// giving is a shadow that has a token for each service, and counts the questions.
type giving struct {
	services []string
	err      error
	hold     chan struct{} // when set, calls wait for it

	mu    sync.Mutex
	asked int
}

func (g *giving) GetCreds(ctx context.Context, _ bool) ([]shadow.Credential, error) {
	g.mu.Lock()
	g.asked++
	hold, err := g.hold, g.err
	g.mu.Unlock()
	if hold != nil {
		<-hold
	}
	if err != nil {
		return nil, err
	}
	var got []shadow.Credential
	for _, service := range g.services {
		got = append(got, shadow.Credential{Service: service})
	}
	return got, nil
}

func (g *giving) GetDelegatedProxy(context.Context, string, time.Time) ([]byte, error) {
	return nil, errors.New("there is none")
}

func (g *giving) set(err error, hold chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.err, g.hold = err, hold
}

func (g *giving) questions() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.asked
}

// noting is a sandbox that notes what is put into it.
type noting struct {
	mu   sync.Mutex
	made []string
}

func (n *noting) note(format string, args ...any) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.made = append(n.made, fmt.Sprintf(format, args...))
	return nil
}

func (n *noting) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.made)
}

func (n *noting) Scratch() string { return "/scratch" }
func (n *noting) Mkdir(name string, mode fs.FileMode) error {
	return n.note("%s %o", name, mode)
}
func (n *noting) WriteFile(name string, _ []byte, mode fs.FileMode) error {
	return n.note("%s %o", name, mode)
}

const refresh = time.Minute

func keeperOf(g *giving) (*Keeper, *noting) {
	ad := classads.NewAd()
	ad.SetString("OAuthServicesNeeded", "box cern*atlas")
	box := &noting{}
	return New(Options{Shadow: g, Sandbox: box, Job: ad, Knobs: settings.Credentials{Refresh: refresh}, Log: slog.New(slog.DiscardHandler)}), box
}

// TestTokens: each is a file of its own, which nobody but the payload can read.
func TestTokens(t *testing.T) {
	k, box := keeperOf(&giving{services: []string{"box", "cern*atlas", "unwanted"}})
	if err := k.Fetch(t.Context()); err != nil {
		t.Fatal(err)
	}
	k.Stop()
	want := []string{".condor_creds 755", ".condor_creds/box.use 600", ".condor_creds/cern_atlas.use 600"}
	if diff := cmp.Diff(want, box.all()); diff != "" {
		t.Error(diff)
	}
	if got := k.Tokens(); got != "/scratch/.condor_creds" {
		t.Errorf("the job is told %q", got)
	}
}

// TestTokenThatIsNotThere: the job does not begin without one that it needs.
func TestTokenThatIsNotThere(t *testing.T) {
	for name, g := range map[string]*giving{
		"one of two": {services: []string{"box"}},
		"none":       {},
		"a failure":  {err: errors.New("no connection")},
	} {
		t.Run(name, func(t *testing.T) {
			k, _ := keeperOf(g)
			defer k.Stop()
			err := k.Fetch(t.Context())
			f := (*job.Failure)(nil)
			if !errors.As(err, &f) || f.Code != shadow.VacateStarterError || k.Tokens() != "" {
				t.Errorf("%v, tokens in %q", err, k.Tokens())
			}
		})
	}
}

// TestRenewalEndsWithStop: tokens are fetched again and again, also after a failure, until
// Stop, and never after it.
func TestRenewalEndsWithStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &giving{services: []string{"box", "cern*atlas"}}
		k, box := keeperOf(g)
		if err := k.Fetch(t.Context()); err != nil {
			t.Fatal(err)
		}
		for n, err := range []error{nil, errors.New("for once"), nil} {
			g.set(err, nil)
			time.Sleep(refresh)
			synctest.Wait()
			if got := g.questions(); got != n+2 {
				t.Fatalf("asked %d times after %d minutes", got, n+1)
			}
		}
		k.Stop()
		before, made := g.questions(), len(box.all())
		time.Sleep(100 * refresh)
		synctest.Wait()
		if got := g.questions() - before; got != 0 || len(box.all()) != made {
			t.Errorf("after the end the shadow is asked %d times, and %d files are written", got, len(box.all())-made)
		}
		k.Stop() // may be called twice
	})
}

// TestStopWaits: a renewal that goes on ends before Stop returns, since the sandbox is
// removed after it.
func TestStopWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &giving{services: []string{"box", "cern*atlas"}}
		k, box := keeperOf(g)
		if err := k.Fetch(t.Context()); err != nil {
			t.Fatal(err)
		}
		hold := make(chan struct{})
		g.set(nil, hold)
		time.Sleep(refresh)
		synctest.Wait() // the shadow takes its time
		stopped := false
		done := make(chan struct{})
		go func() {
			k.Stop()
			stopped = true
			close(done)
		}()
		synctest.Wait()
		if stopped {
			t.Error("Stop does not wait")
		}
		before := len(box.all())
		close(hold)
		<-done
		if made := len(box.all()); made == before {
			t.Error("what the shadow has sent is not there: this proves nothing")
		} else if synctest.Wait(); len(box.all()) != made {
			t.Error("a file is written after the end")
		}
	})
}

// TestNothingToStop: a job that needs no credentials has nothing to renew.
func TestNothingToStop(t *testing.T) {
	var none *Keeper
	none.Stop()
	if none.Tokens() != "" || none.Tickets() != "" || none.Proxy() != "" {
		t.Error("it has some")
	}
}
