package lease

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

const duration = 3 * time.Second

var quiet = slog.New(slog.DiscardHandler)

// contender is one of the processes that take part.
type contender struct {
	*Election
	begun chan time.Time // each time that it becomes the leader
	ended chan time.Time // each time that its work has ended
	slow  time.Duration  // how long the work takes to end
	done  chan error
	stop  context.CancelFunc
}

func enter(t *testing.T, client *fake.Clientset, name string, slow time.Duration) *contender {
	t.Helper()
	e, err := New(t.Context(), Config{Client: client.CoordinationV1(), Namespace: "ns", Name: "site", Identity: name, Duration: duration, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	c := &contender{Election: e, begun: make(chan time.Time, 10), ended: make(chan time.Time, 10), slow: slow, done: make(chan error, 1)}
	ctx, stop := context.WithCancel(t.Context())
	c.stop = stop
	go func() {
		c.done <- e.Run(ctx, func(ctx context.Context) error {
			c.begun <- time.Now()
			<-ctx.Done()
			time.Sleep(c.slow) // what a round takes to end
			c.ended <- time.Now()
			return nil
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := receive(t, c.done); err != nil {
			t.Error(err)
		}
	})
	return c
}

func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(10 * duration):
		t.Error("nothing happens")
		panic(t.Name())
	}
}

// A leader that ends gives the Lease back, but not before its work has ended.
func TestHandOver(t *testing.T) {
	client := fake.NewClientset()
	a := enter(t, client, "a", 700*time.Millisecond)
	receive(t, a.begun)
	b := enter(t, client, "b", 0)
	if name, mine := a.Leader(); name != "a" || !mine {
		t.Errorf("the leader is %q, mine: %t", name, mine)
	}
	select {
	case <-b.begun:
		t.Fatal("both are leaders")
	case <-time.After(2 * duration):
	}
	if name, mine := b.Leader(); name != "a" || mine || !b.Until().IsZero() {
		t.Errorf("the leader is %q, mine: %t; it may act until %s", name, mine, b.Until())
	}
	begin := time.Now()
	a.stop()
	ended, begun := receive(t, a.ended), receive(t, b.begun)
	if !begun.After(ended) {
		t.Errorf("the next leader begins %s before the work of the last one ends", ended.Sub(begun))
	}
	if took := begun.Sub(begin); took > duration {
		t.Errorf("the next leader begins after %s: the Lease was not given back", took)
	}
	if !a.Until().IsZero() {
		t.Errorf("who gave the Lease back may act until %s", a.Until())
	}
}

// A leader that cannot renew the Lease stops to act before another one begins.
func TestLoss(t *testing.T) {
	client := fake.NewClientset()
	var cut atomic.Bool
	for _, verb := range []string{"update", "get"} {
		client.PrependReactor(verb, "leases", func(action clienttesting.Action) (bool, runtime.Object, error) {
			u, update := action.(clienttesting.UpdateAction)
			if cut.Load() && update {
				// Those of a are lost on their way, and those that give its Lease back.
				if holder := u.GetObject().(*coordinationv1.Lease).Spec.HolderIdentity; holder == nil || *holder != "b" {
					return true, nil, errors.New("no route to host")
				}
			}
			return false, nil, nil
		})
	}
	a := enter(t, client, "a", 0)
	receive(t, a.begun)
	b := enter(t, client, "b", 0)
	cut.Store(true)
	last := a.Until()
	ended, begun := receive(t, a.ended), receive(t, b.begun)
	if early := begun.Sub(ended); early < duration/6 {
		t.Errorf("the next leader begins %s after the last one stopped to act", early)
	}
	if late := ended.Sub(last); late > duration/3 {
		t.Errorf("the work ends %s after it may no longer act", late)
	}
	if !a.Until().IsZero() {
		t.Errorf("the one that lost the Lease may act until %s", a.Until())
	}
}

// A right that is missing is said, rather than waited for.
func TestMissingRight(t *testing.T) {
	refuse := func(client *fake.Clientset, verb string) {
		client.PrependReactor(verb, "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "site", errors.New("no right"))
		})
	}
	const want = "the provisioner needs get, create and update of leases in the namespace ns"
	client := fake.NewClientset()
	refuse(client, "get")
	if _, err := New(t.Context(), Config{Client: client.CoordinationV1(), Namespace: "ns", Name: "site", Identity: "a", Log: quiet}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v", err)
	}
	client = fake.NewClientset()
	refuse(client, "create")
	e, err := New(t.Context(), Config{Client: client.CoordinationV1(), Namespace: "ns", Name: "site", Identity: "a", Duration: duration, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	err = e.Run(t.Context(), func(context.Context) error { t.Error("it leads"); return nil })
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("the error is %v", err)
	}
}

// Work that cannot go on ends the election, and gives the Lease back.
func TestWorkThatFails(t *testing.T) {
	client := fake.NewClientset()
	e, err := New(t.Context(), Config{Client: client.CoordinationV1(), Namespace: "ns", Name: "site", Identity: "a", Duration: duration, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the cluster is away")
	if err := e.Run(t.Context(), func(context.Context) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
	begin := time.Now()
	receive(t, enter(t, client, "b", 0).begun)
	if took := time.Since(begin); took > duration {
		t.Errorf("the next leader begins after %s", took)
	}
}

func TestIdentity(t *testing.T) {
	if a, b := Identity(), Identity(); a == b || a == "" {
		t.Errorf("two processes are %q and %q", a, b)
	}
}

// client-go gives the Lease back as soon as it cannot renew it. Then the work is
// told to end, and is waited for.
func TestGivenBackAfterTheWork(t *testing.T) {
	client := fake.NewClientset()
	e, err := New(t.Context(), Config{Client: client.CoordinationV1(), Namespace: "ns", Name: "site", Identity: "a", Duration: duration, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	lock := held{e.lock, e}
	if err := lock.Create(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: "a", LeaseDurationSeconds: 3}); err != nil {
		t.Fatal(err)
	}
	holder := func() string {
		r, _, err := e.lock.Get(context.Background())
		if err != nil {
			t.Error(err)
			return ""
		}
		return r.HolderIdentity
	}
	told, done := make(chan struct{}), make(chan error, 1)
	go func() {
		done <- e.work(t.Context(), t.Context(), func(ctx context.Context) error {
			close(told)
			<-ctx.Done()
			if h := holder(); h != "a" || !e.Until().IsZero() {
				t.Errorf("while the work ends, the holder is %q, and it may act until %s", h, e.Until())
			}
			return nil
		})
	}()
	<-told
	if !e.Until().After(time.Now()) {
		t.Error("the leader may not act")
	}
	if err := lock.Update(t.Context(), resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}); err != nil {
		t.Error(err)
	}
	if err := receive(t, done); err != nil || holder() != "" {
		t.Errorf("%v; the holder is %q", err, holder())
	}

	// Work that does not end keeps the Lease from being given back.
	e.term = &term{end: func() {}, ended: make(chan struct{})}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := lock.Update(ctx, resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}); err == nil {
		t.Error("the Lease is given back while the work goes on")
	}
}

// A leader that did not run for a while, a suspended machine for example, wakes and
// would give the Lease back. It does not give away what is another one's by then.
func TestLeaseOfAnother(t *testing.T) {
	client := fake.NewClientset()
	of := func(name string) held {
		e, err := New(t.Context(), Config{Client: client.CoordinationV1(), Namespace: "ns", Name: "site", Identity: name, Duration: duration, Log: quiet})
		if err != nil {
			t.Fatal(err)
		}
		return held{e.lock, e}
	}
	a, b := of("a"), of("b")
	mine := func(name string) resourcelock.LeaderElectionRecord {
		return resourcelock.LeaderElectionRecord{HolderIdentity: name, LeaseDurationSeconds: 3}
	}
	if err := a.Create(t.Context(), mine("a")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.Update(t.Context(), mine("b")); err != nil {
		t.Fatal(err)
	}
	// As client-go does it.
	if _, _, err := a.Get(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := a.Update(t.Context(), resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}); err == nil || !strings.Contains(err.Error(), "b has it") {
		t.Errorf("the error is %v", err)
	}
	if r, _, err := b.Get(t.Context()); err != nil || r.HolderIdentity != "b" {
		t.Errorf("the holder is %+v, %v", r, err)
	}
	if err := b.Update(t.Context(), resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}); err != nil {
		t.Errorf("the holder cannot give it back: %v", err)
	}
}

// The work ends when the time to act is over, and not before it if the Lease was
// renewed.
func TestTimeToAct(t *testing.T) {
	client := fake.NewClientset()
	e, err := New(t.Context(), Config{Client: client.CoordinationV1(), Namespace: "ns", Name: "site", Identity: "a", Duration: duration, Log: quiet})
	if err != nil {
		t.Fatal(err)
	}
	lock, mine := held{e.lock, e}, resourcelock.LeaderElectionRecord{HolderIdentity: "a", LeaseDurationSeconds: 3}
	if err := lock.Create(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	e.until = time.Now().Add(duration / 10)
	var last time.Time
	ended := make(chan error, 1)
	go func() {
		ended <- e.work(t.Context(), t.Context(), func(ctx context.Context) error {
			if err := lock.Update(ctx, mine); err != nil {
				return err
			}
			last = e.Until()
			<-ctx.Done()
			return nil
		})
	}()
	if err := receive(t, ended); err != nil || last.IsZero() || time.Now().Before(last) {
		t.Errorf("the work has ended before %s: %v", last, err)
	}
}
