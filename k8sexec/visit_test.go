package k8sexec

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/privatedir"
	"podstarter/payload"
)

// TestVisitUnused: a container in which no job has run stays as it is.
func TestVisitUnused(t *testing.T) {
	w := newWorld(t, nil)
	visited := false
	go w.boot(w.api.Snapshot(), "payload-2") // Visit waits for it
	err := w.backend.Visit(t.Context(), "payload-2", func(_ context.Context, wrapper payload.Wrapper, uid, gid int) error {
		visited = true
		if uid != 10002 || gid != 10002 || wrapper.Hello().Nonce != "" {
			t.Errorf("it is visited as %d:%d with nonce %q, want 10002:10002 and no nonce", uid, gid, wrapper.Hello().Nonce)
		}
		if l, err := w.backend.leaseOf(mustPrivate(t, w), 1); l != nil || err != nil {
			t.Errorf("a job could take the container meanwhile: %v, %v", l, err)
		}
		return nil
	})
	if err != nil || !visited {
		t.Fatalf("visited: %v, error: %v", visited, err)
	}
	if n := w.api.Count("patch"); n != 0 {
		t.Errorf("the pod was patched %d times", n)
	}
	select {
	case <-w.wrapper("payload-2").swept:
	default:
		t.Error("what the visit started was not swept")
	}
	if known, err := readSlot(mustPrivate(t, w), "payload-2"); err != nil || known != (slot{}) {
		t.Errorf("of an unused container is noted %+v, %v", known, err)
	}
}

// TestVisitUsed: after a job, the container gets its default image first.
func TestVisitUsed(t *testing.T) {
	w := newWorld(t, nil)
	w.boot(w.api.Snapshot(), "payload")
	l, _ := w.bind("busybox")
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := w.api.Count("patch")
	err := w.backend.Visit(t.Context(), "payload", func(_ context.Context, wrapper payload.Wrapper, _, _ int) error {
		if wrapper.Hello().Nonce != w.api.Snapshot().Annotations[podapi.NonceAnnotation+"payload"] {
			t.Error("the wrapper is not that of the new container")
		}
		return errors.New("seen")
	})
	if err == nil || !strings.Contains(err.Error(), "visit payload container payload: seen") {
		t.Errorf("error %v, want the visitor's", err)
	}
	if w.api.Count("patch") != before+1 || !strings.HasPrefix(podapi.SpecOf(w.api.Snapshot(), "payload").Image, testDefault) {
		t.Errorf("%d patches, and the image %s; want one that sets the default", w.api.Count("patch")-before, podapi.SpecOf(w.api.Snapshot(), "payload").Image)
	}
	if known, _ := readSlot(mustPrivate(t, w), "payload"); known.InUse {
		t.Error("the container was not given back")
	}
}

// TestVisitDistrusts: the slot's file was lost, and the container may have any image.
func TestVisitDistrusts(t *testing.T) {
	w := newWorld(t, nil)
	pod := w.api.Snapshot()
	pod.Annotations = map[string]string{podapi.NonceAnnotation + "payload": "of-a-job"}
	w.boot(pod, "payload")
	err := w.backend.Visit(t.Context(), "payload", func(_ context.Context, wrapper payload.Wrapper, _, _ int) error {
		if wrapper.Hello().Nonce == "of-a-job" {
			t.Error("a wrapper in an unknown image was visited")
		}
		return nil
	})
	if err != nil || w.api.Count("patch") != 1 {
		t.Errorf("error %v, %d patches; want one", err, w.api.Count("patch"))
	}
}

func TestVisitEnds(t *testing.T) {
	w := newWorld(t, nil)
	never := func(context.Context, payload.Wrapper, int, int) error { t.Error("visited"); return nil }
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := w.backend.Visit(ctx, "payload", never); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a container that does not come: %v", err)
	}
	l := w.lease()
	defer l.Release(t.Context())
	if err := w.backend.Visit(ctx, l.name, never); err == nil || !strings.Contains(err.Error(), "a job has it") {
		t.Errorf("a container with a job: %v", err)
	}
	if err := w.backend.Visit(t.Context(), "pilot", never); err == nil || !strings.Contains(err.Error(), "none of the payload containers") {
		t.Errorf("no payload container: %v", err)
	}
}

// TestLeaseOnly: a job with devices gets a container that has them, or none.
func TestLeaseOnly(t *testing.T) {
	w := newWorld(t, nil)
	only := payload.Wish{Only: []string{"payload-2"}}
	first, err := w.backend.Lease(t.Context(), only)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Release(t.Context())
	if got := first.(*lease).name; got != "payload-2" {
		t.Errorf("it gets %s, want payload-2", got)
	}
	_, err = w.backend.Lease(t.Context(), only)
	if err == nil || !strings.Contains(err.Error(), "payload-2") || strings.Contains(err.Error(), "payload,") {
		t.Errorf("a second job: %v", err)
	}
	if got := w.backend.order(mustPrivate(t, w), payload.Wish{Only: []string{}}); len(got) != 0 {
		t.Errorf("a job that may have none can take %v", got)
	}
	if diff := cmp.Diff([]int{0, 1}, w.backend.order(mustPrivate(t, w), payload.Wish{})); diff != "" {
		t.Error("any other job (-want +got):\n" + diff)
	}
}

func mustPrivate(t *testing.T, w *world) *os.Root {
	t.Helper()
	private, err := privatedir.Open(w.private)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { private.Close() })
	return private
}
