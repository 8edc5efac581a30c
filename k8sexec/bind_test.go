package k8sexec

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/privatedir"
	"podstarter/k8sexec/verdict"
	"podstarter/payload"
)

func verdictOf(t *testing.T, err error) *payload.Verdict {
	t.Helper()
	v := (*payload.Verdict)(nil)
	if !errors.As(err, &v) {
		t.Fatalf("no verdict but %T: %v", err, err)
	}
	return v
}

func TestBindPlainThenOnce(t *testing.T) {
	w := newWorld(t, nil)
	const image = "docker://registry.example.com/u/tool:2"

	l, c := w.bind(image)
	if got := w.spec("payload"); got != "registry.example.com/u/tool:2" {
		t.Errorf("an image without known digest was patched in as %q", got)
	}
	if got := w.api.Pod.Annotations[podapi.DefaultImageAnnotation+"payload"]; got != testDefault {
		t.Errorf("default image recorded as %q", got)
	}
	if c.imageID() != "" {
		t.Errorf("image ID %q before anybody can know it", c.imageID())
	}
	w.report("payload", 1, "registry.example.com/u/tool@"+testDigest)
	eventually(t, "the digest", func() bool { return c.imageID() == "registry.example.com/u/tool@"+testDigest })
	if c.Image() != "registry.example.com/u/tool:2" || c.id != testID(1) {
		t.Errorf("container %s of image %s", c.id, c.Image())
	}
	release(t, l)
	calls := map[string]int{"get": 1, "patch": 1, "watch": 1}
	if diff := cmp.Diff(calls, w.api.Calls); diff != "" {
		t.Errorf("calls of the first binding (-want +got):\n%s", diff)
	}

	var specs []string
	for range 3 {
		l, c := w.bind(image)
		specs = append(specs, w.spec("payload"))
		if c.imageID() != "registry.example.com/u/tool@"+testDigest {
			t.Errorf("image ID %q of a known image", c.imageID())
		}
		release(t, l)
	}
	for i, s := range specs {
		if !strings.HasPrefix(s, "registry.example.com/u/tool:run-job-") || !strings.HasSuffix(s, "@"+testDigest) {
			t.Errorf("known image patched in as %q", s)
		}
		if i > 0 && s == specs[i-1] {
			t.Errorf("image string %q used twice", s)
		}
	}
	if got := w.api.Count("patch"); got != 4 {
		t.Errorf("%d patches for 4 bindings", got)
	}
	if got := w.api.Count("get"); got != 1 {
		t.Errorf("%d GETs in the life of a pod", got)
	}
}

func TestDigestOfShortJobIsLearnedByNextBinding(t *testing.T) {
	w := newWorld(t, nil)
	l, _ := w.bind("registry.example.com/u/a:1")
	release(t, l) // before the kubelet has reported anything
	w.report("payload", 1, "registry.example.com/u/a@"+testDigest)
	l, _ = w.bind("registry.example.com/u/b:1")
	release(t, l)
	l, _ = w.bind("registry.example.com/u/a:1")
	defer release(t, l)
	if got := w.spec("payload"); !strings.HasSuffix(got, "@"+testDigest) {
		t.Errorf("image string %q, though the status had told its digest", got)
	}
}

// The digest must not be learned from a status that shows another image's container.
func TestDigestOfOtherContainerIsNotLearned(t *testing.T) {
	w := newWorld(t, nil)
	l, c := w.bind("registry.example.com/u/tool:2")
	w.report("payload", 99, "registry.example.com/u/tool@"+testDigest)
	w.report("payload", 1, "registry.example.com/u/tool@sha256:"+strings.Repeat("b", 64))
	eventually(t, "the digest", func() bool { return c.imageID() != "" })
	release(t, l)
	if !strings.HasSuffix(c.imageID(), strings.Repeat("b", 64)) {
		t.Errorf("learned %s from the wrong container", c.imageID())
	}
}

func TestBindSamePlainImage(t *testing.T) {
	t.Run("digest recalled", func(t *testing.T) {
		w := newWorld(t, nil)
		l, _ := w.bind("registry.example.com/u/a:1")
		release(t, l)
		w.report("payload", 1, "registry.example.com/u/a@"+testDigest)
		l, _ = w.bind("registry.example.com/u/a:1")
		defer release(t, l)
		if got := w.spec("payload"); !strings.HasSuffix(got, "@"+testDigest) {
			t.Errorf("image string %q", got)
		}
	})
	t.Run("restarted in place", func(t *testing.T) {
		w := newWorld(t, nil)
		l, first := w.bind("registry.example.com/u/a:1")
		release(t, l)
		w.report("payload", 1, "sha256:"+strings.Repeat("c", 64)) // an image without repository digest
		l, second := w.bind("registry.example.com/u/a:1")
		defer release(t, l)
		if got := w.spec("payload"); got != "registry.example.com/u/a:1" {
			t.Errorf("image string %q", got)
		}
		if first.Client().Hello().Boot == second.Client().Hello().Boot {
			t.Error("two jobs in one container")
		}
	})
	t.Run("image that the pod was created with", func(t *testing.T) {
		w := newWorld(t, nil)
		w.api.Pod.Generation = 1
		w.api.Pod.Status.ContainerStatuses[0].ImageID = "registry.example.com/site/default@" + testDigest
		l, _ := w.bind("")
		defer release(t, l)
		if got := w.spec("payload"); !strings.HasSuffix(got, "@"+testDigest) {
			t.Errorf("image string %q", got)
		}
	})
}

func TestDefaultImage(t *testing.T) {
	tests := []struct {
		name, annotation, want string
	}{
		{"of the pod", "", "registry.example.com/site/default:1"},
		{"of the annotation", "registry.example.com/site/first:1", "registry.example.com/site/first:1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, func(o *options.Options) { o.ThrowawayTags = false })
			w.api.Pod.Spec.Containers[1].Image = "registry.example.com/some/job:1"
			if tt.annotation == "" {
				w.api.Pod.Spec.Containers[1].Image = testDefault
			} else {
				w.api.Pod.Annotations = map[string]string{podapi.DefaultImageAnnotation + "payload": tt.annotation}
			}
			l, first := w.bind("registry.example.com/u/a:1")
			release(t, l)
			l, second := w.bind(" ")
			defer release(t, l)
			if second.Image() != tt.want {
				t.Errorf("default image %s after %s, want %s", second.Image(), first.Image(), tt.want)
			}
		})
	}
	t.Run("is not the user's fault", func(t *testing.T) {
		w := newWorld(t, nil)
		w.api.OnPatch = func(*corev1.Pod, map[string]bool) {
			w.api.Status("payload", func(_ *corev1.Pod, s *corev1.ContainerStatus) {
				s.State = waitingFor("ErrImagePull", `failed to resolve reference "`+testDefault+`": not found`)
			})
		}
		w.api.Pod.Spec.Containers[1].Image = "registry.example.com/some/job:1"
		w.api.Pod.Annotations = map[string]string{podapi.DefaultImageAnnotation + "payload": testDefault}
		l := w.lease()
		_, err := l.Bind(context.Background(), payload.BindRequest{Activation: "job"})
		if v := verdictOf(t, err); v.Blame != payload.Pilot || !strings.Contains(v.Message, "the pod's manifest") {
			t.Errorf("verdict %v: %s", v.Blame, v)
		}
		_, err = l.Bind(context.Background(), payload.BindRequest{Activation: "job", Image: testDefault, ChosenBy: "SOME_KNOB"})
		if v := verdictOf(t, err); v.Blame != payload.Site || !strings.Contains(v.Message, "SOME_KNOB") {
			t.Errorf("verdict %v: %s", v.Blame, v)
		}
	})
}

// TestOldWrapperLeaves: the old wrapper is told to leave after the patch, but not while
// the kubelet may still take its end for a crash.
func TestOldWrapperLeaves(t *testing.T) {
	tests := []struct {
		name    string
		image   string
		nudge   time.Duration
		act     bool // whether the kubelet says that it acts on the patch
		waiting bool // whether the wrapper stays until then
	}{
		{"the kubelet acts", "a", time.Hour, true, true},
		{"the kubelet is silent", "a", time.Millisecond, false, false},
		{"only that makes the kubelet act", testDefault, time.Hour, false, false},
		{"the kubelet is at rest", "a", time.Hour, false, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.backend.timing.nudge = test.nudge
			old := startWrapper(t, w.control, "payload", "old nonce", "boot0")
			if test.name == "the kubelet is at rest" {
				bound(t, w, "payload", 2*w.backend.timing.rest)
			}
			w.api.OnPatch = func(pod *corev1.Pod, _ map[string]bool) {
				if test.waiting {
					select {
					case <-old.left:
						t.Error("the old wrapper was told to leave before the kubelet acted")
					case <-time.After(50 * time.Millisecond):
					}
				}
				if test.act {
					w.api.Status("payload", func(*corev1.Pod, *corev1.ContainerStatus) {})
				}
				<-old.left
				w.restart(pod, map[string]bool{"payload": true})
			}
			w.api.Fail = func(verb string, _ int) error {
				select {
				case <-old.left:
					if verb == "patch" {
						t.Error("the old wrapper was told to leave before the patch")
					}
				default:
				}
				return nil
			}
			l, _ := w.bind(test.image)
			release(t, l)
		})
	}
}

// bound notes that the container was bound ago before now.
func bound(t *testing.T, w *world, container string, ago time.Duration) {
	t.Helper()
	private, err := privatedir.Open(w.private)
	if err != nil {
		t.Fatal(err)
	}
	defer private.Close()
	s := slot{PodUID: "uid-1", DefaultImage: testDefault, Spec: testDefault, Nonce: "old nonce", Boot: "boot0", Bound: time.Now().Add(-ago)}
	if ago < 0 {
		s = s.unbound()
	}
	if err := s.write(private, container); err != nil {
		t.Fatal(err)
	}
}

func TestKubeletIsAtRest(t *testing.T) {
	w := newWorld(t, nil)
	l := w.lease()
	defer release(t, l)
	const never, now, long = time.Duration(-1), time.Duration(0), 2 * time.Hour
	old := slot{PodUID: "uid-1", Bound: time.Now().Add(-long)}
	if !l.isAtRest(old) {
		t.Error("no rest although nothing was bound lately")
	}
	if l.isAtRest(slot{PodUID: "uid-1", Bound: time.Now()}) || l.isAtRest(slot{PodUID: "uid-1"}) || l.isAtRest(slot{}) {
		t.Error("rest although this container was bound just now, or who knows when")
	}
	for _, other := range []struct {
		ago  time.Duration
		want bool
	}{{now, false}, {never, false}, {long, true}} {
		bound(t, w, "payload-2", other.ago)
		if got := l.isAtRest(old); got != other.want {
			t.Errorf("with the other container bound %s ago: %v, want %v", other.ago, got, other.want)
		}
	}
}

func TestSeveralContainersAtOnce(t *testing.T) {
	w := newWorld(t, nil)
	var both sync.WaitGroup
	for i := range 2 {
		l := w.lease()
		if uid, gid := l.Owner(); uid != 10001+i || gid != uid {
			t.Errorf("payload %d:%d in container %d", uid, gid, i)
		}
		both.Go(func() {
			for j := range 5 {
				image := fmt.Sprintf("registry.example.com/u/image%d:%d", i, j)
				c, err := l.Bind(context.Background(), payload.BindRequest{Activation: "a", Image: image})
				if err != nil {
					t.Error(err)
					return
				}
				if got := w.spec(l.name); got != image || c.Image() != image {
					t.Errorf("container %s has %s", l.name, got)
				}
				c.(*container).close()
			}
		})
	}
	both.Wait()
	_, err := w.backend.Lease(context.Background(), payload.Wish{})
	if v := verdictOf(t, err); v.Reason != verdict.ReasonNoneFree {
		t.Errorf("a third lease of two: %v", err)
	}
}
