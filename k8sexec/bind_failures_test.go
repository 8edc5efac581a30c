package k8sexec

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/verdict"
	"podstarter/payload"
)

// A failure of the last job's image that the status still shows must not fail this job.
func TestStaleFailureIsIgnored(t *testing.T) {
	const old = "registry.example.com/u/misspelt:1"
	notFound := waitingFor("ErrImagePull", `failed to pull and unpack image "`+old+`": failed to resolve reference "`+old+`": `+old+`: not found`)
	backOff := waitingFor("ImagePullBackOff", `Back-off pulling image "`+old+`": ErrImagePull: `+notFound.Waiting.Message)

	w := newWorld(t, nil)
	fail := func(*corev1.Pod, map[string]bool) {
		w.api.Status("payload", func(_ *corev1.Pod, s *corev1.ContainerStatus) { s.State = notFound })
	}
	w.api.OnPatch = fail
	l := w.lease()
	_, err := l.Bind(context.Background(), payload.BindRequest{Activation: "one", Image: old})
	if v := verdictOf(t, err); v.Blame != payload.User || v.Subcode != verdict.SubcodeNotFound {
		t.Fatalf("verdict %v/%d: %s", v.Blame, v.Subcode, v)
	}
	w.api.OnPatch = func(pod *corev1.Pod, changed map[string]bool) {
		fail(pod, changed) // seen with the new generation, but about the old image
		w.api.Status("payload", func(_ *corev1.Pod, s *corev1.ContainerStatus) { s.State = backOff })
		w.api.Status("payload", func(_ *corev1.Pod, s *corev1.ContainerStatus) { s.State = waitingFor("ContainerCreating", "") })
		eventually(t, "the watch", func() bool { return w.api.Count("watch") >= 2 })
		w.restart(pod, changed)
	}
	c, err := l.Bind(context.Background(), payload.BindRequest{Activation: "two", Image: "registry.example.com/u/right:1"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Image() != "registry.example.com/u/right:1" {
		t.Errorf("bound %s", c.Image())
	}
}

// The binding makes a kubelet look at the pod that would not publish the failure before
// its next look.
func TestKubeletIsStirred(t *testing.T) {
	failed := func(image string) corev1.ContainerState {
		return waitingFor("ErrImagePull", `failed to resolve reference "`+image+`": `+image+`: not found`)
	}
	w := newWorld(t, nil)
	w.api.Pod.Status.ContainerStatuses[0].State = failed(testDefault)
	w.api.OnPatch = func(pod *corev1.Pod, _ map[string]bool) {
		state := failed(testDefault)
		if pod.Annotations[podapi.StirAnnotation+"payload"] != "" {
			state = failed("registry.example.com/u/misspelt:1")
		}
		w.api.Status("payload", func(_ *corev1.Pod, s *corev1.ContainerStatus) { s.State = state })
	}
	_, err := w.lease().Bind(context.Background(), payload.BindRequest{Activation: "a", Image: "registry.example.com/u/misspelt:1"})
	if v := verdictOf(t, err); v.Blame != payload.User || v.Subcode != verdict.SubcodeNotFound || !strings.Contains(v.Message, "misspelt:1: not found") {
		t.Errorf("verdict %s", v)
	}
}

func TestRefusedThrowawayTag(t *testing.T) {
	tests := []struct {
		name, image string
		state       corev1.ContainerState
		plainOnly   bool
	}{
		{"form not understood", "registry.example.com/u/a:1", waitingFor("InvalidImageName", "couldn't parse image name"), true},
		{"form not understood by the runtime", "registry.example.com/u/a:1",
			waitingFor("ErrImagePull", "Docker references with both a tag and digest are currently not supported"), true},
		{"digest gone", "registry.example.com/u/a:1", waitingFor("ErrImagePull", "failed to resolve reference: not found"), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			l, c := w.bind(tt.image)
			w.report("payload", 1, "registry.example.com/u/a@"+testDigest)
			eventually(t, "the digest", func() bool { return c.imageID() != "" })
			release(t, l)
			w.broken.Store(true)
			w.api.OnPatch = func(pod *corev1.Pod, changed map[string]bool) {
				if strings.Contains(podapi.SpecOf(pod, "payload").Image, "@") {
					w.api.Status("payload", func(_ *corev1.Pod, s *corev1.ContainerStatus) { s.State = tt.state })
					return
				}
				w.restart(pod, changed)
			}
			l, _ = w.bind(tt.image)
			if got := w.spec("payload"); got != tt.image {
				t.Errorf("image string %q, want the plain reference", got)
			}
			known, err := readSlot(l.private, "payload")
			if err != nil || known.PlainOnly != tt.plainOnly {
				t.Errorf("plain only %v (%v), want %v", known.PlainOnly, err, tt.plainOnly)
			}
			release(t, l)
		})
	}
}

func TestTransientFailureGetsAnotherChance(t *testing.T) {
	refused := waitingFor("ErrImagePull", `failed to do request: Head "https://registry.example.com/v2/u/a/manifests/1": dial tcp 192.0.2.7:443: connect: connection refused`)
	t.Run("and makes it", func(t *testing.T) {
		w := newWorld(t, nil)
		w.api.OnPatch = func(pod *corev1.Pod, changed map[string]bool) {
			w.api.Status("payload", func(_ *corev1.Pod, s *corev1.ContainerStatus) { s.State = refused })
			eventually(t, "the watch", func() bool { return w.api.Count("watch") > 0 })
			w.restart(pod, changed)
		}
		l, _ := w.bind("registry.example.com/u/a:1")
		release(t, l)
	})
	t.Run("and another, but not for ever", func(t *testing.T) {
		w := newWorld(t, nil)
		backOff := waitingFor("ImagePullBackOff", "Back-off pulling image: "+refused.Waiting.Message)
		w.api.OnPatch = func(*corev1.Pod, map[string]bool) {
			for range verdict.MaxTries {
				w.api.Status("payload", func(_ *corev1.Pod, s *corev1.ContainerStatus) { s.State = refused })
				w.api.Status("payload", func(_ *corev1.Pod, s *corev1.ContainerStatus) { s.State = backOff })
			}
		}
		var told []string
		_, err := w.lease().Bind(context.Background(), payload.BindRequest{Activation: "a", Image: "registry.example.com/u/a:1", Report: func(s string) { told = append(told, s) }})
		if v := verdictOf(t, err); v.Blame != payload.Site || !strings.Contains(v.Message, "connection refused") {
			t.Errorf("verdict %v: %s", v.Blame, v)
		}
		if len(told) < 2 {
			t.Errorf("reported %q", told)
		}
	})
}

func TestBindTimeout(t *testing.T) {
	w := newWorld(t, func(o *options.Options) { o.BindTimeout = time.Second })
	w.api.OnPatch = func(*corev1.Pod, map[string]bool) {
		w.api.Status("payload", func(_ *corev1.Pod, s *corev1.ContainerStatus) { s.State = waitingFor("ContainerCreating", "") })
	}
	_, err := w.lease().Bind(context.Background(), payload.BindRequest{Activation: "a", Image: "a"})
	v := verdictOf(t, err)
	if v.Blame != payload.Site || v.Reason != verdict.ReasonTimeout || !strings.Contains(v.Message, "ContainerCreating") {
		t.Errorf("verdict %s", v)
	}
}

func TestBindCancelled(t *testing.T) {
	w := newWorld(t, nil)
	removed := errors.New("job removed")
	ctx, cancel := context.WithCancelCause(context.Background())
	w.api.OnPatch = func(*corev1.Pod, map[string]bool) { cancel(removed) }
	_, err := w.lease().Bind(ctx, payload.BindRequest{Activation: "a", Image: "a"})
	if !errors.Is(err, removed) {
		t.Errorf("error %v, want the cause", err)
	}
	if v := (*payload.Verdict)(nil); errors.As(err, &v) {
		t.Errorf("a verdict on a job that was removed: %s", v)
	}
}

func TestPodEnds(t *testing.T) {
	tests := []struct {
		name   string
		change func(*corev1.Pod)
		reason string
	}{
		{"deleted", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Now()} }, verdict.ReasonPodDeleted},
		{"evicted", func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "The node was low on resource: ephemeral-storage."
		}, "Evicted"},
		{"deadline", func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, "DeadlineExceeded" }, "DeadlineExceeded"},
		{"replaced", func(p *corev1.Pod) { p.UID = "uid-2" }, verdict.ReasonPodReplaced},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.api.OnPatch = func(*corev1.Pod, map[string]bool) {
				w.api.Status("payload", func(p *corev1.Pod, _ *corev1.ContainerStatus) { tt.change(p) })
			}
			_, err := w.lease().Bind(context.Background(), payload.BindRequest{Activation: "a", Image: "a"})
			if v := verdictOf(t, err); v.Blame != payload.Pilot || v.Reason != tt.reason {
				t.Errorf("verdict %s", v)
			}
		})
	}
	t.Run("removed by force", func(t *testing.T) {
		w := newWorld(t, nil)
		w.api.OnPatch = func(pod *corev1.Pod, _ map[string]bool) {
			w.api.Mu.Lock()
			defer w.api.Mu.Unlock()
			w.api.Put(pod, watch.Deleted)
		}
		_, err := w.lease().Bind(context.Background(), payload.BindRequest{Activation: "a", Image: "a"})
		if v := verdictOf(t, err); v.Blame != payload.Pilot || v.Reason != verdict.ReasonPodDeleted {
			t.Errorf("verdict %s", v)
		}
	})
}

func TestAPIServerTrouble(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	conflict := apierrors.NewConflict(pods, "pilot-0", errors.New("modified"))
	t.Run("passing", func(t *testing.T) {
		w := newWorld(t, nil)
		w.api.Fail = func(verb string, n int) error {
			if n > 2 {
				return nil
			}
			return map[string]error{"get": apierrors.NewServiceUnavailable("starting"), "patch": conflict, "watch": apierrors.NewTooManyRequests("busy", 0)}[verb]
		}
		l, c := w.bind("registry.example.com/u/a:1")
		w.report("payload", 1, "registry.example.com/u/a@"+testDigest)
		eventually(t, "the digest", func() bool { return c.imageID() != "" })
		release(t, l)
	})
	t.Run("watch too old", func(t *testing.T) {
		w := newWorld(t, nil)
		w.api.Fail = func(verb string, n int) error {
			if verb == "watch" && n == 1 {
				return apierrors.NewResourceExpired("too old resource version")
			}
			return nil
		}
		l, c := w.bind("registry.example.com/u/a:1")
		w.report("payload", 1, "registry.example.com/u/a@"+testDigest)
		eventually(t, "the digest", func() bool { return c.imageID() != "" })
		release(t, l)
	})
	t.Run("away for longer than a binding may take", func(t *testing.T) {
		w := newWorld(t, func(o *options.Options) { o.BindTimeout = 50 * time.Millisecond })
		w.api.Fail = func(string, int) error { return apierrors.NewServiceUnavailable("starting") }
		_, err := w.lease().Bind(context.Background(), payload.BindRequest{Activation: "a", Image: "a"})
		if v := verdictOf(t, err); v.Blame != payload.Site || !strings.Contains(v.Message, "API server") {
			t.Errorf("verdict %s", v)
		}
	})
	tests := []struct {
		name, reason, says string
		err                error
		blame              payload.Blame
	}{
		{"away", verdict.ReasonUnreachable, "cannot be used at the moment", context.DeadlineExceeded, payload.Site},
		{"overloaded", "TooManyRequests", "cannot be used at the moment", apierrors.NewTooManyRequests("busy", 0), payload.Site},
		{"forbidden", "Forbidden", "lacks permission", apierrors.NewForbidden(pods, "pilot-0", errors.New("no")), payload.Pilot},
		{"unauthorized", "Unauthorized", "token", apierrors.NewUnauthorized("Unauthorized"), payload.Pilot},
		{"no pod", "NotFound", options.KnobPodName, apierrors.NewNotFound(pods, "pilot-0"), payload.Pilot},
		{"webhook", "Forbidden", "admission control", &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden,
			Message: `admission webhook "images.example.com" denied the request: not from there`}}, payload.Site},
		{"policy", "Invalid", "admission control", &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
			Message: `pods "pilot-0" is forbidden: ValidatingAdmissionPolicy 'images' with binding 'images' denied request: no`}}, payload.Site},
		{"webhook away", "InternalError", "did not answer", apierrors.NewInternalError(errors.New(`failed calling webhook "images.example.com"`)), payload.Site},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.api.Fail = func(verb string, _ int) error {
				if verb == "patch" {
					return tt.err
				}
				return nil
			}
			_, err := w.lease().Bind(context.Background(), payload.BindRequest{Activation: "a", Image: "a"})
			v := verdictOf(t, err)
			if v.Blame != tt.blame || v.Reason != tt.reason || !strings.Contains(v.Message, tt.says) || !strings.Contains(v.Message, tt.err.Error()) {
				t.Errorf("verdict %s", v)
			}
		})
	}
}

// A missing wrapper is the pod's fault from the first job on, even if it was there
// before: it is missing with the default image as well.
func TestWrapperMissing(t *testing.T) {
	w := newWorld(t, nil)
	l, _ := w.bind("registry.example.com/u/good:1")
	newKubelet(w, map[string]way{"": cannotRun(`exec: "/opt/podstarter/bin/condor_pod_wrapper": stat /opt/podstarter/bin/condor_pod_wrapper: no such file or directory`)})
	for i := range 3 {
		_, err := l.Bind(context.Background(), payload.BindRequest{Activation: "a", Image: fmt.Sprintf("registry.example.com/u/odd:%d", i)})
		if v := verdictOf(t, err); v.Blame != payload.Pilot {
			t.Errorf("image %d: %v: %s", i, v.Blame, v)
		}
	}
}

func TestSilentWrapper(t *testing.T) {
	w := newWorld(t, nil)
	newKubelet(w, map[string]way{"": silent})
	_, err := w.lease().Bind(context.Background(), payload.BindRequest{Activation: "a", Image: "a"})
	if v := verdictOf(t, err); v.Blame != payload.Pilot || v.Reason != verdict.ReasonSilent {
		t.Errorf("verdict %s", v)
	}
}
