// Package lease lets several provisioners of one name stand by for each other: a
// Lease of the namespace says which of them makes pods.
//
// client-go elects. What it does not promise is added here: that the leader has
// ended its work before the Lease is given back, and a time until which it may
// act, which ends before another one can begin.
package lease

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// DefaultDuration is how long the others wait for a leader that says nothing any
// more, as the controllers of Kubernetes have it.
const DefaultDuration = 15 * time.Second

// Config says which Lease.
type Config struct {
	Client    coordinationv1client.LeasesGetter
	Namespace string
	Name      string
	// Identity is this process's; no other one has it.
	Identity string
	// Duration is how long the others wait for a leader that is silent. The leader
	// stops to act after two thirds of it.
	Duration time.Duration
	Log      *slog.Logger
}

// Identity returns a name for this process: that of its pod, and a random part,
// since another process of the same pod is another one.
func Identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	b := make([]byte, 4)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	return host + "_" + hex.EncodeToString(b)
}

// Election takes part in the election. Its methods may be called at once.
type Election struct {
	config Config
	lock   *resourcelock.LeaseLock

	mu     sync.Mutex
	leader string    // the identity that was seen last
	holder string    // the identity in the Lease as it was read last
	until  time.Time // when this process may no longer act
	term   *term     // the work of this process, while it is the leader
	err    error     // why the election cannot go on
	failed func()    // ends the election
}

// term is the time in which this process is the leader.
type term struct {
	end   context.CancelFunc // ends the work
	ended chan struct{}      // closed when the work has ended
	timer *time.Timer        // ends the work when the time to act is over
}

// New returns an election, and an error if the provisioner may not read the Lease.
func New(ctx context.Context, c Config) (*Election, error) {
	if c.Duration == 0 {
		c.Duration = DefaultDuration
	}
	e := &Election{config: c, lock: &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: c.Namespace, Name: c.Name},
		Client:     c.Client,
		LockConfig: resourcelock.ResourceLockConfig{Identity: c.Identity},
	}}
	if _, _, err := e.lock.Get(ctx); err != nil && !apierrors.IsNotFound(err) {
		return nil, e.denied(err)
	}
	return e, nil
}

func (e *Election) denied(err error) error {
	return fmt.Errorf("taking the lease %s: %w; the provisioner needs get, create and update of leases in the namespace %s, or lease.disabled in its configuration", e.lock.Describe(), err, e.config.Namespace)
}

// Leader returns the identity of the leader, which is empty if none is known, and
// whether this process is it.
func (e *Election) Leader() (identity string, mine bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.leader, e.term != nil
}

// Until returns when this process may no longer act. It is later each time that
// the Lease is renewed.
func (e *Election) Until() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.until
}

// act is how long the leader may act after it began to renew the Lease: a call
// that it sends then has a third of the duration left to arrive.
func (e *Election) act() time.Duration { return e.config.Duration * 2 / 3 }

// Run takes part until ctx ends or lead returns an error. Each time that this
// process becomes the leader, it calls lead with a context that ends when the time
// to act is over. The Lease is given back after lead has returned.
func (e *Election) Run(ctx context.Context, lead func(ctx context.Context) error) error {
	for ctx.Err() == nil {
		if err := e.once(ctx, lead); err != nil {
			return err
		}
	}
	return nil
}

// once takes part until this process was the leader once.
func (e *Election) once(ctx context.Context, lead func(ctx context.Context) error) error {
	// The Lease is given back when this context ends, so that ends after the work.
	electing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	e.mu.Lock()
	e.failed = stop
	e.mu.Unlock()
	elected := make(chan context.Context, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: held{e.lock, e}, Name: e.config.Name, ReleaseOnCancel: true,
		LeaseDuration: e.config.Duration, RenewDeadline: e.act(), RetryPeriod: e.config.Duration * 2 / 15,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { elected <- ctx },
			OnStoppedLeading: func() {},
			OnNewLeader:      e.see,
		},
	})
	if err != nil {
		return fmt.Errorf("taking the lease %s: %w", e.lock.Describe(), err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		elector.Run(electing)
	}()
	select {
	case <-ctx.Done():
	case <-ended:
	case leading := <-elected:
		err = e.work(ctx, leading, lead)
	}
	stop()
	<-ended
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil {
		err = e.err
	}
	return err
}

// work runs lead until ctx or leading ends, or the time to act is over.
func (e *Election) work(ctx, leading context.Context, lead func(ctx context.Context) error) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(leading, end)()
	t := &term{end: end, ended: make(chan struct{})}
	e.mu.Lock()
	t.timer = time.AfterFunc(time.Until(e.until), end)
	// OnNewLeader may come later than this.
	e.leader, e.term = e.config.Identity, t
	e.mu.Unlock()
	defer func() {
		t.timer.Stop()
		close(t.ended)
		e.mu.Lock()
		defer e.mu.Unlock()
		e.term, e.until = nil, time.Time{}
	}()
	return lead(ctx)
}

func (e *Election) see(identity string) {
	e.config.Log.Info("The lease is taken", "lease", e.config.Name, "holder", identity, "mine", identity == e.config.Identity)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.leader = identity
}

// held is the lock. It notes until when the Lease is certain.
type held struct {
	*resourcelock.LeaseLock
	e *Election
}

// Get implements resourcelock.Interface.
func (h held) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r, raw, err := h.LeaseLock.Get(ctx)
	h.e.mu.Lock()
	defer h.e.mu.Unlock()
	h.e.holder = ""
	if err == nil {
		h.e.holder = r.HolderIdentity
	}
	return r, raw, err
}

// Create implements resourcelock.Interface.
func (h held) Create(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	return h.e.renew(func() error { return h.LeaseLock.Create(ctx, r) })
}

// Update implements resourcelock.Interface.
func (h held) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	if r.HolderIdentity == h.e.config.Identity {
		return h.e.renew(func() error { return h.LeaseLock.Update(ctx, r) })
	}
	if err := h.e.rest(ctx); err != nil {
		return err
	}
	h.e.mu.Lock()
	holder := h.e.holder
	h.e.mu.Unlock()
	// client-go looks at the Lease before it gives it back, but not at whose it is
	// (tools/leaderelection, release). After a while in which this process did not run,
	// it is another one's.
	if holder != "" && holder != h.e.config.Identity {
		return fmt.Errorf("it is not given back: %s has it", holder)
	}
	return h.LeaseLock.Update(ctx, r)
}

// renew takes or renews the Lease.
func (e *Election) renew(call func() error) error {
	begin := time.Now()
	err := call()
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err == nil:
		e.until = begin.Add(e.act())
		if e.term != nil {
			e.term.timer.Reset(time.Until(e.until))
		}
	case apierrors.IsForbidden(err) && e.term == nil:
		// It would be tried for ever without a word.
		e.err = e.denied(err)
		e.failed()
	}
	return err
}

// rest ends the work before the Lease is given back.
func (e *Election) rest(ctx context.Context) error {
	e.mu.Lock()
	e.until = time.Time{}
	t := e.term
	e.mu.Unlock()
	if t == nil {
		return nil
	}
	t.end()
	select {
	case <-t.ended:
		return nil
	case <-ctx.Done():
		return errors.New("the work of the leader has not ended")
	}
}
