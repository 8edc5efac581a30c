package k8sexec

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// die ends a lease as the death of its starter does: lock and connection end, and
// nothing is noted.
func die(t *testing.T, l *lease, c *container) {
	t.Helper()
	c.close()
	if err := l.lock.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestResetLeftovers: a container whose starter died gets its default image and a
// wrapper of its own, once.
func TestResetLeftovers(t *testing.T) {
	w := newWorld(t, nil)
	l, c := w.bind("registry.example.com/a/tool:2")
	old := w.wrapper("payload")
	die(t, l, c)
	if err := w.backend.ResetLeftovers(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := w.spec("payload"); got != testDefault {
		t.Errorf("the container is to run %s, want %s", got, testDefault)
	}
	eventually(t, "another wrapper", func() bool { return w.wrapper("payload") != old })
	patches := w.api.Count("patch")
	if err := w.backend.ResetLeftovers(context.Background()); err != nil {
		t.Fatal(err)
	}
	if n := w.api.Count("patch") - patches; n != 0 {
		t.Errorf("what was reset is reset again (%d patches)", n)
	}
	// The next job finds all in order.
	l, _ = w.bind("registry.example.com/a/tool:2")
	release(t, l)
}

// TestLeftoverStays: the startd waits for the reset, which does not wait for a wrapper that
// only says that it leaves; the kubelet ends that.
func TestLeftoverStays(t *testing.T) {
	w := newWorld(t, nil)
	l, c := w.bind("registry.example.com/a/tool:2")
	w.wrapper("payload").stays.Store(true)
	die(t, l, c)
	w.api.Mu.Lock()
	w.api.OnPatch = nil // the kubelet takes its time
	w.api.Mu.Unlock()
	done := make(chan error, 1)
	go func() { done <- w.backend.ResetLeftovers(t.Context()) }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * w.backend.timing.leave):
		t.Error("the reset waits for the wrapper")
	}
}

// TestNothingIsLeft: the reset does not touch a container that is leased, was given
// back, or has never been bound.
func TestNothingIsLeft(t *testing.T) {
	w := newWorld(t, nil)
	reset := func(what string) {
		t.Helper()
		patches := w.api.Count("patch")
		if err := w.backend.ResetLeftovers(context.Background()); err != nil {
			t.Fatal(err)
		}
		if n := w.api.Count("patch") - patches; n != 0 {
			t.Errorf("%s: %d patches", what, n)
		}
	}
	reset("never bound")
	l, _ := w.bind("registry.example.com/a/tool:2")
	reset("leased")
	release(t, l)
	reset("given back")
	if err := os.WriteFile(filepath.Join(w.private, slotFile("payload")), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	reset("nothing is known")
}

// TestResetLeftoversFails: a container that cannot be reset now is reset later.
func TestResetLeftoversFails(t *testing.T) {
	w := newWorld(t, nil)
	l, c := w.bind("registry.example.com/a/tool:2")
	die(t, l, c)
	w.failVerb("patch", apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "pilot-0", errors.New("no")))
	if err := w.backend.ResetLeftovers(context.Background()); err == nil {
		t.Error("a container was reset without permission")
	}
	w.api.Mu.Lock()
	w.api.Fail = nil
	w.api.Mu.Unlock()
	if err := w.backend.ResetLeftovers(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := w.spec("payload"); got != testDefault {
		t.Errorf("the container is to run %s, want %s", got, testDefault)
	}
}
