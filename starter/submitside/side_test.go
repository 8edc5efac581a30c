package submitside

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/condor/version"
	"podstarter/internal/cedar"
	"podstarter/starter/orders"
)

// gone is a connection that was lost and does not come back.
type gone struct {
	last      time.Time
	lost      chan struct{}
	abandoned error
	resumed   bool
}

func (g *gone) Lost() <-chan struct{}      { return g.lost }
func (g *gone) LastCall() time.Time        { return g.last }
func (g *gone) Abandon(reason error) bool  { g.abandoned = reason; return true }
func (g *gone) Over() error                { return g.abandoned }
func (g *gone) SetVersion(version.Version) {}
func (g *gone) Await(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func (g *gone) AwaitNext(ctx context.Context, _ <-chan struct{}) error { return g.Await(ctx) }

func (g *gone) Resume(context.Context, *cedar.Stream, func(shadow.SecSessionInfo) error) error {
	g.resumed = true
	return nil
}

// TestLeaseCountsFromTheLastCall, as the shadow's own does: else the job would still run
// here when it begins elsewhere.
func TestLeaseCountsFromTheLastCall(t *testing.T) {
	for name, tt := range map[string]struct{ silent, want time.Duration }{
		"a call just now":      {0, time.Hour},
		"a call some time ago": {50 * time.Minute, 10 * time.Minute},
		"the lease is over":    {2 * time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				g := &gone{last: begin.Add(-tt.silent), lost: make(chan struct{})}
				close(g.lost)
				log := slog.New(slog.DiscardHandler)
				o := orders.New(log)
				s := New(g, o, Security{}, log)
				s.Know(classads.NewAd(), job.Info{Lease: time.Hour}, classads.NewAd())
				s.Keep(t.Context())
				if took := time.Since(begin); took != tt.want {
					t.Errorf("the shadow is waited for %v, want %v", took, tt.want)
				}
				if e := o.Ended(); e == nil || !e.Lost || !errors.Is(g.abandoned, errLeaseOver) {
					t.Errorf("%+v, abandoned for %v", e, g.abandoned)
				}
			})
		})
	}
}

// twice is a connection that comes back half an hour after its loss and is lost again before
// anybody has looked.
type twice struct {
	gone
	next chan struct{} // closed by the second loss
	back bool
}

func (c *twice) Lost() <-chan struct{} {
	if c.back {
		return c.next
	}
	return c.lost
}

func (c *twice) AwaitNext(ctx context.Context, lost <-chan struct{}) error {
	if lost != c.lost {
		return c.Await(ctx)
	}
	time.Sleep(30 * time.Minute)
	c.back, c.last = true, time.Now()
	return nil
}

// TestEachLossHasItsLease: the lease counts from the last call to the shadow that was there
// last, however short.
func TestEachLossHasItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		c := &twice{gone: gone{last: begin, lost: make(chan struct{})}, next: make(chan struct{})}
		close(c.lost)
		close(c.next)
		log := slog.New(slog.DiscardHandler)
		o := orders.New(log)
		s := New(c, o, Security{}, log)
		s.Know(classads.NewAd(), job.Info{Lease: time.Hour}, classads.NewAd())
		s.Keep(t.Context())
		if took, want := time.Since(begin), 90*time.Minute; took != want {
			t.Errorf("the shadow is waited for %v, want %v", took, want)
		}
		if e := o.Ended(); e == nil || !e.Lost {
			t.Errorf("%+v", e)
		}
	})
}

// TestAwaitEnds: what is left of the job is kept for the shadow until a demand allows no
// delay.
func TestAwaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := slog.New(slog.DiscardHandler)
		o := orders.New(log)
		s := New(&gone{}, o, Security{}, log)
		awaited := make(chan error, 1)
		go func() { awaited <- s.Await(t.Context()) }()
		o.End(orders.Demand{Reason: "soon", Urgency: orders.Soft})
		synctest.Wait()
		if len(awaited) > 0 {
			t.Errorf("a demand that leaves time ends the wait: %v", <-awaited)
			return
		}
		o.End(orders.Demand{Reason: "now"})
		synctest.Wait()
		if len(awaited) == 0 || !errors.Is(<-awaited, orders.ErrEnded) {
			t.Error("a demand that leaves no time does not end the wait")
		}
	})
}

// TestWhoMayComeBack: the submit side of this job gets its job back, and nobody else who
// may talk to the starter; a job that is being ended is nobody's.
func TestWhoMayComeBack(t *testing.T) {
	for name, tt := range map[string]struct {
		user string
		over error
		want string
	}{
		"the job's shadow":       {shadow.SubmitSide, nil, shadow.ResultSuccess},
		"another user":           {"alice@site.org", nil, shadow.ResultNotAuthorized},
		"nobody":                 {"", nil, shadow.ResultNotAuthorized},
		"its beginning":          {shadow.SubmitSide[:6], nil, shadow.ResultNotAuthorized},
		"the job is being ended": {shadow.SubmitSide, errors.New("removed"), shadow.ResultInvalidState},
	} {
		t.Run(name, func(t *testing.T) {
			here, there := net.Pipe()
			starter, peer := cedar.NewStream(here), cedar.NewStream(there)
			defer starter.Close()
			defer peer.Close()
			log := slog.New(slog.DiscardHandler)
			g := &gone{abandoned: tt.over}
			s := New(g, orders.New(log), Security{}, log)
			s.Know(classads.NewAd(), job.Info{}, classads.NewAd())
			ended := make(chan error, 1)
			go func() {
				ended <- s.Reconnect(t.Context(), &cedar.Call{Stream: starter, User: tt.user})
			}()
			request := classads.NewAd()
			request.SetString("Command", "CA_RECONNECT_JOB")
			request.SetString("ShadowIpAddr", "<127.0.0.1:9>")
			peer.PutAd(request)
			if err := peer.EndMessage(); err != nil {
				t.Fatal(err)
			}
			reply, err := peer.GetAd()
			if err != nil {
				t.Fatal(err)
			}
			err = <-ended
			welcome := tt.want == shadow.ResultSuccess
			if got := reply.StringOr("Result", ""); got != tt.want || welcome != (err == nil) || g.resumed != welcome {
				t.Errorf("answer %q, want %q; %v; the connection is taken up: %v", got, tt.want, err, g.resumed)
			}
			if back := len(s.Back()) > 0; back != welcome {
				t.Errorf("a shadow is said to be back: %v", back)
			}
		})
	}
}
