package k8sexec

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"podstarter/k8sexec/options"
	"podstarter/k8sexec/verdict"
	"podstarter/payload"
)

// runJob binds a container and starts a payload in it.
func runJob(t *testing.T, w *world) (*lease, *container) {
	t.Helper()
	l, c := w.bind("registry.example.com/u/a:1")
	spec := payload.Spec{Activation: "job", UID: 10001, GID: 10001, Path: "/job", Dir: "/"}
	if _, err := c.Client().Start(context.Background(), spec); err != nil {
		t.Fatal(err)
	}
	return l, c
}

// TestLeaseIsVacant: the holder of a lease makes a sandbox for its user, with the job's
// tokens in it. So nobody gets a lease while a process of that user may be alive.
func TestLeaseIsVacant(t *testing.T) {
	tests := []struct {
		name  string
		after func(*testing.T, *world, *lease, *container) // how the job before ended
		free  bool                                         // the wrapper becomes free while it is waited for
		want  string                                       // what the lease takes: "" nothing, "word" the wrapper's, "anew" a new container
	}{
		{name: "swept and given back", after: func(t *testing.T, _ *world, l *lease, c *container) {
			if err := c.Client().Sweep(context.Background()); err != nil {
				t.Fatal(err)
			}
			release(t, l)
		}},
		{name: "given back with something that would not die", want: "word", after: func(t *testing.T, w *world, l *lease, c *container) {
			w.wrapper("payload").dirty.Store(true)
			if err := c.Client().Sweep(context.Background()); err == nil {
				t.Fatal("the sweep found nothing")
			}
			release(t, l)
		}},
		{name: "starter killed, payload dead", want: "word", after: func(t *testing.T, _ *world, l *lease, c *container) { die(t, l, c) }},
		{name: "starter killed, payload dies", want: "word", free: true, after: func(t *testing.T, w *world, l *lease, c *container) {
			w.wrapper("payload").busy.Store(true)
			die(t, l, c)
		}},
		{name: "starter killed, payload lives on", want: "anew", after: func(t *testing.T, w *world, l *lease, c *container) {
			w.wrapper("payload").busy.Store(true)
			die(t, l, c)
		}},
		{name: "starter killed, then the pilot", want: "word", after: func(t *testing.T, w *world, l *lease, c *container) {
			old := w.wrapper("payload")
			die(t, l, c)
			if err := w.backend.ResetLeftovers(context.Background()); err != nil {
				t.Fatal(err)
			}
			eventually(t, "another wrapper", func() bool { return w.wrapper("payload") != old })
		}},
	}
	for _, test := range tests {
		for _, root := range []bool{true, false} {
			t.Run(test.name, func(t *testing.T) {
				w := newWorld(t, func(o *options.Options) { o.Containers = []string{"payload"} })
				if w.backend.self.UID = 1000; root {
					w.backend.self.UID = 0
				}
				l, c := runJob(t, w)
				test.after(t, w, l, c)
				before := w.wrapper("payload")
				if test.want == "word" {
					w.backend.timing.idle = 20 * time.Second
				}
				if test.free {
					time.AfterFunc(50*time.Millisecond, func() { before.busy.Store(false) })
				}
				patches, served := w.api.Count("patch"), before.served.Load()
				w.mu.Lock()
				w.killed = nil
				w.mu.Unlock()
				release(t, w.lease())

				w.mu.Lock()
				killed := w.killed
				w.mu.Unlock()
				once := slices.Repeat([]int{10001}, min(len(killed), 2))
				if root != (len(killed) > 0) || !slices.Equal(killed, once) || root && test.want == "" && len(killed) != 1 {
					t.Errorf("users whose processes were ended: %v", killed)
				}
				patched, after := w.api.Count("patch")-patches, w.wrapper("payload")
				if wanted := test.want == "anew"; wanted != (patched > 0) || wanted == (after == before) {
					t.Errorf("%d patches, a new container: %v", patched, after != before)
				}
				if asked := before.served.Load() > served; asked != (test.want == "word") {
					t.Errorf("the wrapper's word was asked for and given: %v", asked)
				}
				// The next lease need not ask.
				served = after.served.Load()
				release(t, w.lease())
				if after.served.Load() > served {
					t.Error("the next lease asks again")
				}
			})
		}
	}
}

// TestUnkillable: a process that survives SIGKILL blocks the container.
func TestUnkillable(t *testing.T) {
	w := newWorld(t, nil)
	w.backend.self.UID = 0
	w.backend.killUser = func(context.Context, int) error { return errors.New("process 7 (job) hangs") }
	l, err := w.backend.Lease(context.Background(), payload.Wish{})
	if err == nil {
		release(t, l)
		t.Fatal("a lease of a container with a living payload")
	}
	if v := verdictOf(t, err); v.Blame != payload.Site || v.Reason != verdict.ReasonStillAlive {
		t.Errorf("verdict %s", v)
	}
	w.backend.killUser = func(context.Context, int) error { return nil }
	release(t, w.lease())
}
