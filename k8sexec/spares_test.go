package k8sexec

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/privatedir"
	"podstarter/payload"
)

const (
	spareImage = "registry.example.com/u/a@" + testDigest
	otherImage = "registry.example.com/u/b@" + testDigest
)

// withSpares is a pod with so many payload containers, of which so many are spares.
func withSpares(t *testing.T, containers, spares int, change ...func(*options.Options)) *world {
	t.Helper()
	w := newWorld(t, func(o *options.Options) {
		o.Spares, o.Containers = spares, nil
		for i := range containers {
			o.Containers = append(o.Containers, fmt.Sprint("payload-", i))
		}
		for _, c := range change {
			c(o)
		}
	})
	w.backend.timing.rest = 0 // the kubelet is at rest
	pod := w.api.Snapshot()
	pod.Spec.Containers, pod.Status.ContainerStatuses = pod.Spec.Containers[:1], nil
	for _, name := range w.backend.opt.Containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name, Image: testDefault})
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: name, ContainerID: "containerd://" + testID(0), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		})
	}
	w.api.Pod = pod
	return w
}

// job leases and binds as a starter does.
func (w *world) job(image, owner string) (*lease, payload.Container) {
	w.t.Helper()
	l, err := w.backend.Lease(context.Background(), payload.Wish{Image: image, Owner: owner})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = l.Release(context.Background()) })
	c, err := l.Bind(context.Background(), payload.BindRequest{Activation: "job", Image: image, Owner: owner})
	if err != nil {
		w.t.Fatalf("bind %q: %v", image, err)
	}
	return l.(*lease), c
}

// known is what is known of a container.
func (w *world) known(container string) slot {
	w.t.Helper()
	private, err := privatedir.Open(w.private)
	if err != nil {
		w.t.Fatal(err)
	}
	defer private.Close()
	s, err := readSlot(private, container)
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// TestFreshContainerIsThere: while a job runs, the spare gets its image; the next job takes
// it without a call, and what the first has used is made new then.
func TestFreshContainerIsThere(t *testing.T) {
	w := withSpares(t, 2, 1)
	first, c := w.job(spareImage, "ann")
	w.backend.Restock(context.Background())
	if got := w.api.Count("patch"); got != 2 {
		t.Fatalf("%d patches; want one for the job and one ahead", got)
	}
	release(t, first)
	second, d := w.job(spareImage, "bob")
	if second.name != "payload-1" || d.Client().Hello().Boot == c.Client().Hello().Boot {
		t.Errorf("second job in %s, boot %s, after %s", second.name, d.Client().Hello().Boot, c.Client().Hello().Boot)
	}
	if got := d.(*container).how; got != payload.Ahead {
		t.Errorf("the second job's container was %s, not made ahead", got)
	}
	if d.Image() != c.Image() || d.(*container).imageID() != c.(*container).imageID() {
		t.Errorf("image %s (%s) instead of %s (%s)", d.Image(), d.(*container).imageID(), c.Image(), c.(*container).imageID())
	}
	if got := w.api.Count("patch"); got != 2 {
		t.Errorf("%d patches; want none for a job whose container is there", got-2)
	}
	if s := w.known("payload-1"); s.Fresh || !s.InUse || s.Owner != "bob" {
		t.Errorf("known of the container in use: %+v", s)
	}
	w.backend.Restock(context.Background())
	if s := w.known("payload-0"); !s.Fresh || s.Image != spareImage || s.Owner != "" || w.wrapper("payload-0").nonce != s.Nonce {
		t.Errorf("known of the used container: %+v", s)
	}
}

// TestSeveralByOnePatch: all that is used gets new by one patch, at most as many as there
// are spares.
func TestSeveralByOnePatch(t *testing.T) {
	w := withSpares(t, 5, 3)
	running, _ := w.job(spareImage, "ann")
	defer release(t, running)
	w.backend.Restock(context.Background())
	if got := w.api.Count("patch"); got != 3 { // three containers, then the fourth
		t.Errorf("%d patches, want 3", got)
	}
	for _, name := range w.backend.opt.Containers[1:] {
		if s := w.known(name); !s.Fresh || s.DefaultImage != testDefault || w.wrapper(name).nonce != s.Nonce {
			t.Errorf("%s: %+v", name, s)
		}
		if got := w.api.Snapshot().Annotations[podapi.DefaultImageAnnotation+name]; got != testDefault {
			t.Errorf("default image of %s noted as %q", name, got)
		}
	}
	if got := w.api.Count("get"); got > 4 { // one tells the order of the containers
		t.Errorf("%d GETs", got)
	}
}

// TestPatchKeepsTheOrder: the containers that have been unused for longest are made new
// first, but the patch names them in the pod's order.
func TestPatchKeepsTheOrder(t *testing.T) {
	w := withSpares(t, 3, 2)
	var used []*lease
	for range 2 {
		l, _ := w.job(spareImage, "ann")
		used = append(used, l)
	}
	running, _ := w.job(spareImage, "bob")
	defer release(t, running)
	for _, l := range used {
		release(t, l)
	}
	private, err := privatedir.Open(w.private)
	if err != nil {
		t.Fatal(err)
	}
	defer private.Close()
	later := w.known("payload-0")
	later.Started = later.Started.Add(time.Second)
	if err := later.write(private, "payload-0"); err != nil {
		t.Fatal(err)
	}
	w.backend.Restock(context.Background())
	for _, name := range []string{"payload-0", "payload-1"} {
		if got := w.known(name); !got.Fresh {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestWhatIsMadeAheadMayFail: nothing that goes wrong with a container made ahead fails a job.
func TestWhatIsMadeAheadMayFail(t *testing.T) {
	for name, spoil := range map[string]func(w *world){
		"its wrapper is another's": func(w *world) { w.boot(w.api.Snapshot(), "payload-1") },
		"it never announces itself": func(w *world) {
			w.wrapper("payload-1").stop()
			_ = os.Remove(filepath.Join(w.control, "payload-1", payload.SocketName))
		},
		"the pod was replaced": func(w *world) {
			pod := w.api.Snapshot()
			pod.UID = "uid-2"
			pod.Annotations = nil
			w.api.Pod = pod
			w.boot(pod, "payload-1")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := withSpares(t, 2, 1)
			first, _ := w.job(spareImage, "ann")
			w.backend.Restock(context.Background())
			release(t, first)
			if name == "its wrapper is another's" {
				w.api.Pod.Annotations[podapi.NonceAnnotation+"payload-1"] = "another"
			}
			spoil(w)
			l, c := w.job(spareImage, "ann")
			defer release(t, l)
			if s := w.known(l.name); s.Fresh || s.Nonce != c.Client().Hello().Nonce {
				t.Errorf("known: %+v, wrapper %+v", s, c.Client().Hello())
			}
		})
	}
}

// TestFreshContainerMustBeGenuine: an image that puts a program in the wrapper's place gets
// no job in a container made ahead either.
func TestFreshContainerMustBeGenuine(t *testing.T) {
	w := withSpares(t, 2, 1)
	for i := range w.api.Pod.Spec.Containers {
		w.api.Pod.Spec.Containers[i].Command = []string{"/opt/wrapper"}
	}
	exe := filepath.Join(w.proc, fmt.Sprint(os.Getpid()), "exe")
	if err := os.MkdirAll(filepath.Dir(exe), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/opt/wrapper", exe); err != nil {
		t.Fatal(err)
	}
	first, _ := w.job(spareImage, "ann")
	w.backend.Restock(context.Background())
	release(t, first)
	if err := os.Remove(exe); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/opt/evil", exe); err != nil {
		t.Fatal(err)
	}
	l, err := w.backend.Lease(context.Background(), payload.Wish{Image: spareImage})
	if err != nil {
		t.Fatal(err)
	}
	defer release(t, l)
	if _, err := l.Bind(context.Background(), payload.BindRequest{Activation: "job", Image: spareImage}); err == nil || !strings.Contains(err.Error(), "/opt/evil") {
		t.Errorf("error %v", err)
	}
}

// TestNothingIsMadeAhead: where a container cannot be made ahead, or must not.
func TestNothingIsMadeAhead(t *testing.T) {
	for _, tt := range []struct {
		name   string
		image  string
		change func(*options.Options)
		before func(*world)
	}{
		{name: "no spares", image: spareImage, change: func(o *options.Options) { o.Spares = 0 }},
		{name: "no throw-away tags", image: spareImage, change: func(o *options.Options) { o.ThrowawayTags = false }},
		{name: "no digest known", image: "registry.example.com/u/a:1"},
		{name: "a starter died in it", image: spareImage, before: func(w *world) {
			l := w.lease()
			l.note(slot{PodUID: "uid-1", DefaultImage: testDefault, Nonce: "n", InUse: true})
			_ = l.lock.Close()
		}},
		{name: "its last binding failed", image: spareImage, before: func(w *world) {
			l := w.lease()
			l.note(slot{PodUID: "uid-1", DefaultImage: testDefault, Spec: testDefault})
			_ = l.lock.Close()
		}},
		{name: "another starter does that", image: spareImage, before: func(w *world) {
			private, err := privatedir.Open(w.private)
			if err != nil {
				w.t.Fatal(err)
			}
			lock, err := tryLock(private, restockLock)
			if err != nil {
				w.t.Fatal(err)
			}
			w.t.Cleanup(func() { _ = lock.Close() })
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := withSpares(t, 2, 1, func(o *options.Options) {
				if tt.change != nil {
					tt.change(o)
				}
			})
			l, _ := w.job(tt.image, "ann")
			if l.name != "payload-0" {
				t.Fatal(l.name)
			}
			if tt.before != nil {
				// It has the first free container, which is the second.
				tt.before(w)
			}
			patches := w.api.Count("patch")
			w.backend.Restock(context.Background())
			if got := w.api.Count("patch") - patches; got != 0 {
				t.Errorf("%d patches", got)
			}
		})
	}
}

// TestRestockFails: a patch that fails is no job's trouble, and the container is bound as
// one of which nothing is known.
func TestRestockFails(t *testing.T) {
	w := withSpares(t, 2, 1)
	first, _ := w.job(spareImage, "ann")
	w.failVerb("patch", denial("some-policy"))
	w.backend.Restock(context.Background())
	w.api.Fail = nil
	if s := w.known("payload-1"); s.Fresh || s.Spec != "" || s.InUse {
		t.Errorf("known: %+v", s)
	}
	w.backend.Restock(context.Background())
	if s := w.known("payload-1"); !s.Fresh {
		t.Errorf("not tried again: %+v", s)
	}
	second, _ := w.job(spareImage, "ann")
	if second.name != "payload-1" {
		t.Errorf("second job in %s", second.name)
	}
	release(t, first)
	release(t, second)
}

// TestRestockEndsWithTheJob: a job that has ended does not wait for what is made ahead.
func TestRestockEndsWithTheJob(t *testing.T) {
	w := withSpares(t, 2, 1)
	w.backend.timing.ahead, w.backend.timing.nudge = time.Hour, time.Hour
	first, _ := w.job(spareImage, "ann")
	defer release(t, first)
	patched := make(chan struct{})
	w.api.Mu.Lock()
	w.api.OnPatch = func(*corev1.Pod, map[string]bool) { close(patched) } // and no wrapper comes
	w.api.Mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.backend.Restock(ctx)
	}()
	<-patched
	cancel()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Fatal("still waiting")
	}
	if s := w.known("payload-1"); !s.Fresh {
		t.Errorf("known: %+v", s)
	}
}

// TestWebhookRewritesWhatIsMadeAhead: nobody knows what such a container runs.
func TestWebhookRewritesWhatIsMadeAhead(t *testing.T) {
	w := withSpares(t, 2, 1)
	first, _ := w.job(spareImage, "ann")
	defer release(t, first)
	w.api.Rewrite = func(pod *corev1.Pod) { podapi.SpecOf(pod, "payload-1").Image = otherImage }
	w.backend.Restock(context.Background())
	if s := w.known("payload-1"); s.Fresh || s.Nonce != "" || s.Spec != otherImage {
		t.Errorf("known: %+v", s)
	}
}

// TestKeptContainersStay: where containers are kept for their owners, no more are made new
// than there are spares.
func TestKeptContainersStay(t *testing.T) {
	w := withSpares(t, 4, 1, func(o *options.Options) { o.Reset = options.ResetImage })
	kept, _ := w.job(spareImage, "ann")
	running, _ := w.job(spareImage, "bob")
	release(t, kept)
	w.backend.Restock(context.Background())
	if got := w.api.Count("patch"); got != 3 {
		t.Errorf("%d patches, want one for each job and one ahead", got)
	}
	if got := w.known("payload-0"); got.Fresh || got.Owner != "ann" {
		t.Errorf("a container that is kept was made new: %+v", got)
	}
	release(t, running)
	_, c := w.job(spareImage, "bob")
	if got := w.known("payload-1"); !got.InUse || got.Boot != c.Client().Hello().Boot {
		t.Errorf("the owner's container was not used again: %+v", got)
	}
}
