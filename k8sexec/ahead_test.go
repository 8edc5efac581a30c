package k8sexec

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
	"podstarter/payload"
)

// TestBehindAnotherPull: a binding whose container the kubelet has not come to, since it is
// at another's, says so, and its time does not run until then.
func TestBehindAnotherPull(t *testing.T) {
	for _, tt := range []struct {
		name    string
		counted bool // whether the cluster counts generations in the status
	}{{"generations in the status", true}, {"an older cluster", false}} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, func(o *options.Options) { o.BindTimeout = time.Second })
			w.backend.timing.progress = 10 * time.Millisecond
			if !tt.counted {
				w.api.Pod.Generation, w.api.Pod.Status.ObservedGeneration = 0, 0
			}
			w.api.OnPatch = func(*corev1.Pod, map[string]bool) {} // the kubelet is at the first pull
			var mu sync.Mutex
			var told []string
			report := func(text string) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, text)
			}
			words := func() string {
				mu.Lock()
				defer mu.Unlock()
				return strings.Join(told, "\n")
			}
			first, second := w.lease(), w.lease()
			gaveUp, giveUp := context.WithCancel(t.Context())
			defer giveUp()
			over := make(chan error, 1)
			first.clock = nil
			w.backend.opt.BindTimeout = time.Hour
			go func() {
				_, err := first.Bind(gaveUp, payload.BindRequest{Activation: "first", Image: "registry.example.com/u/slow:1"})
				over <- err
			}()
			eventually(t, "the first patch", func() bool { return w.api.Count("patch") == 1 })
			eventually(t, "the first slot", func() bool { s, _ := readSlot(first.private, first.name); return s.Spec != "" })
			w.backend.opt.BindTimeout = time.Second
			done := make(chan error, 1)
			go func() {
				_, err := second.Bind(t.Context(), payload.BindRequest{Activation: "second", Image: userImage, Report: report})
				done <- err
			}()
			eventually(t, "what it waits for", func() bool {
				return strings.Contains(words(), "busy with container payload, which is to run registry.example.com/u/slow:1")
			})
			select {
			case err := <-done:
				t.Fatalf("it did not wait for the kubelet: %v", err)
			case <-time.After(1500 * time.Millisecond): // longer than the binding may take
			}
			// The first starter gives up; the kubelet does not.
			giveUp()
			<-over
			release(t, first)
			v := verdictOf(t, <-done)
			if v.Blame != payload.Site || !strings.Contains(v.Reason, "PodBusy") || !strings.Contains(v.Message, "busy with the image of another job") {
				t.Errorf("verdict %v, %s: %s", v.Blame, v.Reason, v)
			}
		})
	}
}

// TestFailedImageIsWithdrawn: the kubelet is not left to try an image that nobody waits
// for.
func TestFailedImageIsWithdrawn(t *testing.T) {
	refused := func(w *world) {
		w.api.Status("payload", func(_ *corev1.Pod, s *corev1.ContainerStatus) {
			s.State = waitingFor("ErrImagePull", `failed to resolve reference "`+userImage+`": not found`)
		})
	}
	for _, tt := range []struct {
		name    string
		kubelet func(*world) // what it does about the first patch
		removed bool         // the job, while the kubelet is at it
	}{
		{name: "refused", kubelet: refused},
		{name: "removed", kubelet: func(*world) {}, removed: true},
		{name: "too late", kubelet: func(*world) {}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, func(o *options.Options) { o.BindTimeout = 300 * time.Millisecond })
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			w.api.OnPatch = func(pod *corev1.Pod, changed map[string]bool) {
				if podapi.SpecOf(pod, "payload").Image != userImage {
					return
				}
				tt.kubelet(w)
				if tt.removed {
					cancel()
				}
			}
			l := w.lease()
			if _, err := l.Bind(ctx, payload.BindRequest{Activation: "job", Image: userImage, Owner: "ann"}); err == nil {
				t.Fatal("bound")
			}
			if got := w.spec("payload"); got != testDefault {
				t.Errorf("the pod has %s", got)
			}
			release(t, l)
			if got := w.api.Count("patch"); got != 2 {
				t.Errorf("%d patches", got)
			}
			// The next job is bound as after any other.
			w.api.OnPatch = w.restart
			w.backend.opt.BindTimeout = 10 * time.Second
			l, _ = w.bind("registry.example.com/u/next:1")
			release(t, l)
		})
	}
}
