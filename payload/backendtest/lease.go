package backendtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"podstarter/payload"
	"podstarter/wrapper/agent/agenttest"
)

// lease takes a lease and releases it at the end of the test.
func lease(t *testing.T, b payload.Backend) payload.Lease {
	t.Helper()
	l, err := b.Lease(agenttest.Context(t), payload.Wish{})
	if err != nil {
		t.Fatalf("lease: %v", err)
	}
	t.Cleanup(func() {
		if err := l.Release(agenttest.Context(t)); err != nil {
			t.Errorf("release: %v", err)
		}
	})
	return l
}

func release(t *testing.T, l payload.Lease) {
	t.Helper()
	if err := l.Release(agenttest.Context(t)); err != nil {
		t.Errorf("release: %v", err)
	}
}

// leaseAll takes all leases except some.
func leaseAll(t *testing.T, f Fixture, but int) []payload.Lease {
	t.Helper()
	var all []payload.Lease
	for range f.Slots - but {
		all = append(all, lease(t, f.Backend))
	}
	return all
}

// leasesExclude: each lease has a user of its own. When all are taken, the caller waits
// until one is given back.
func leasesExclude(t *testing.T, f Fixture) {
	if f.Slots == 0 {
		first, second := lease(t, f.Backend), lease(t, f.Backend)
		if owner(first) != owner(second) || owner(first) != (user{uid(), gid()}) {
			t.Errorf("users %v and %v, but this process is %v", owner(first), owner(second), user{uid(), gid()})
		}
		return
	}
	all := leaseAll(t, f, 0)
	owners := make(map[user]bool)
	for _, l := range all {
		u := owner(l)
		if owners[u] || agenttest.Root() && (u.uid <= 0 || u.gid <= 0) {
			t.Errorf("user %v is root, or has two leases", u)
		}
		owners[u] = true
	}
	if l, err := f.Backend.Lease(agenttest.Context(t), payload.Wish{}); err == nil {
		release(t, l)
		t.Fatalf("got more leases than slots, one for user %v", owner(l))
	}
	gone := errors.New("the job is gone")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(gone)
	if l, err := f.Backend.Lease(ctx, payload.Wish{}); err == nil {
		release(t, l)
		t.Fatal("got more leases than slots")
	} else if !errors.Is(err, gone) {
		t.Errorf("error %v instead of the cause of the context's end", err)
	}
	last := all[len(all)-1]
	release(t, last)
	if again := lease(t, f.Backend); owner(again) != owner(last) {
		t.Errorf("the released lease had user %v, the next has %v", owner(last), owner(again))
	}
}

// leasesOfFiles: leases for files only take no slot, and have users of their own.
func leasesOfFiles(t *testing.T, f Fixture) {
	if f.Slots == 0 || !agenttest.Root() {
		return // all have the user of this process
	}
	owners := make(map[user]bool)
	for _, l := range leaseAll(t, f, 0) {
		owners[owner(l)] = true
	}
	for range 2 {
		l, err := f.Backend.Lease(agenttest.Context(t), payload.Wish{FilesOnly: true})
		if err != nil {
			t.Fatalf("lease for files only, beside %d others: %v", f.Slots, err)
		}
		defer release(t, l)
		u := owner(l)
		if owners[u] || u.uid <= 0 || u.gid <= 0 {
			t.Errorf("user %v is root, or has two leases", u)
		}
		owners[u] = true
		if _, err := l.Bind(agenttest.Context(t), payload.BindRequest{Activation: "a"}); err == nil {
			t.Error("a lease for files only has a container")
		}
	}
}

// leaseEndsWithProcess: a starter that is killed keeps no lease.
func leaseEndsWithProcess(t *testing.T, f Fixture) {
	if f.Slots == 0 {
		kill := f.Hold(t)
		lease(t, f.Backend)
		kill()
		return
	}
	leaseAll(t, f, 1)
	kill := f.Hold(t)
	if l, err := f.Backend.Lease(agenttest.Context(t), payload.Wish{}); err == nil {
		release(t, l)
		t.Fatalf("user %v has a lease that another process holds", owner(l))
	}
	kill()
	ctx := agenttest.Context(t)
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		l, err := f.Backend.Lease(ctx, payload.Wish{})
		if err == nil {
			release(t, l)
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("no lease after the end of the process: %v", err)
		}
	}
}
