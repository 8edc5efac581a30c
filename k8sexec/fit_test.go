package k8sexec

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
	"podstarter/payload"
)

const mib = 1 << 20

// resizing is a world in which payload containers have limits of two CPUs and 1 GiB, and
// request half a CPU and 256 MiB.
func resizing(t *testing.T, change func(*options.Options)) *world {
	t.Helper()
	w := newWorld(t, func(o *options.Options) {
		o.Resize = true
		if change != nil {
			change(o)
		}
	})
	for _, name := range []string{"payload", "payload-2"} {
		podapi.SpecOf(w.api.Pod, name).Resources = corev1.ResourceRequirements{
			Limits:   corev1.ResourceList{"cpu": resource.MustParse("2"), "memory": resource.MustParse("1Gi"), "ephemeral-storage": resource.MustParse("1Gi")},
			Requests: corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("256Mi")},
		}
	}
	return w
}

func (w *world) limits() podapi.Limits {
	return podapi.LimitsOf(podapi.SpecOf(w.api.Snapshot(), "payload").Resources.Limits)
}

var (
	ownLimits = podapi.Limits{MilliCPU: 2000, Memory: 1024 * mib}
	large     = payload.Size{MilliCPU: 4000, Memory: 4096 * mib}
)

func (w *world) bindSized(size payload.Size) (*lease, error) {
	l := w.lease()
	_, err := l.Bind(context.Background(), payload.BindRequest{Activation: "job", Image: "registry.example.com/u/a:1", Owner: "ann", Size: size})
	return l, err
}

// TestFit: a container has what the slot of its job has, and its own limits back afterwards.
func TestFit(t *testing.T) {
	for _, tt := range []struct {
		name    string
		size    payload.Size
		change  func(*options.Options)
		edit    func(r *corev1.ResourceRequirements)
		want    podapi.Limits
		resizes int // of one job
	}{
		{name: "more", size: large, want: podapi.Limits{MilliCPU: 4000, Memory: 4096 * mib}, resizes: 2},
		{name: "less", size: payload.Size{MilliCPU: 1000, Memory: 512 * mib}, want: podapi.Limits{MilliCPU: 1000, Memory: 512 * mib}, resizes: 2},
		{name: "less than it requests", size: payload.Size{MilliCPU: 100, Memory: 64 * mib}, want: podapi.Limits{MilliCPU: 500, Memory: 256 * mib}, resizes: 2},
		{name: "the same", size: payload.Size{MilliCPU: 2000, Memory: 1024 * mib}, want: ownLimits},
		{name: "nobody knows", want: ownLimits},
		{name: "switched off", size: large, change: func(o *options.Options) { o.Resize = false }, want: ownLimits},
		{name: "no limit of CPU", size: large, edit: func(r *corev1.ResourceRequirements) { delete(r.Limits, "cpu") }, want: podapi.Limits{Memory: 4096 * mib}, resizes: 2},
		{name: "no limits", size: large, edit: func(r *corev1.ResourceRequirements) { r.Limits = nil }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := resizing(t, tt.change)
			if tt.edit != nil {
				tt.edit(&podapi.SpecOf(w.api.Pod, "payload").Resources)
			}
			before := w.limits()
			for job := 1; job <= 2; job++ {
				l, err := w.bindSized(tt.size)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.want, w.limits()); diff != "" {
					t.Errorf("while job %d runs (-want +got):\n%s", job, diff)
				}
				if err := l.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(before, w.limits()); diff != "" {
					t.Errorf("after job %d (-want +got):\n%s", job, diff)
				}
				if got := w.api.Count("resize"); got != job*tt.resizes {
					t.Errorf("%d changes after job %d, want %d a job", got, job, tt.resizes)
				}
			}
			if got := podapi.SpecOf(w.api.Snapshot(), "payload").Resources.Requests.Memory().Value(); got != 256*mib {
				t.Errorf("the container requests %d bytes now", got)
			}
		})
	}
}

// TestFitAfterDeath: the next job's starter finds a container that is as large as the last job
// left it, and knows its own size.
func TestFitAfterDeath(t *testing.T) {
	w := resizing(t, func(o *options.Options) { o.Containers = []string{"payload"} })
	l, err := w.bindSized(large)
	if err != nil {
		t.Fatal(err)
	}
	l.lock.Close() // as if it died
	next, err := w.bindSized(payload.Size{MilliCPU: 1000, Memory: 512 * mib})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(podapi.Limits{MilliCPU: 1000, Memory: 512 * mib}, w.limits()); diff != "" {
		t.Errorf("for the next job (-want +got):\n%s", diff)
	}
	if err := next.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ownLimits, w.limits()); diff != "" {
		t.Errorf("after it (-want +got):\n%s", diff)
	}
}

// TestNotResized: a job whose slot has more memory than its container gets goes back to the
// queue; for one that needs less, the container stays as it is.
func TestNotResized(t *testing.T) {
	refused := &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "maximum memory usage per Container is 2Gi"}}
	small := payload.Size{MilliCPU: 1000, Memory: 512 * mib}
	for _, tt := range []struct {
		name    string
		size    payload.Size
		refuse  error
		has     int64 // what the control group says; 0 for what the pod's spec says
		pending string
		says    string // of the verdict; empty for none
	}{
		{name: "refused, more", size: large, refuse: refused, says: "maximum memory usage per Container is 2Gi"},
		{name: "refused, less", size: small, refuse: refused},
		{name: "put off, more", size: large, has: 1024 * mib, pending: "the node has no room", says: "nothing after 200ms (PodResizePending Deferred: the node has no room)"},
		{name: "put off, less", size: small, has: 1024 * mib},
		{name: "whole pages", size: payload.Size{MilliCPU: 2000, Memory: 2048*mib + 5}, has: 2048 * mib},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := resizing(t, nil)
			if tt.refuse != nil {
				w.failVerb("resize", tt.refuse)
			}
			if tt.pending != "" {
				w.api.Pod.Status.Conditions = append(w.api.Pod.Status.Conditions,
					corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonDeferred, Message: tt.pending})
			}
			w.backend.memoryOf = func(*payload.Client) (int64, bool) { return tt.has, tt.has > 0 }
			_, err := w.bindSized(tt.size)
			if tt.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			v := (*payload.Verdict)(nil)
			if !errors.As(err, &v) || v.Blame != payload.Site || v.Reason != "NotResized" || !strings.Contains(v.Message, tt.says) {
				t.Errorf("got %v, want the job to go back to the queue with %q", err, tt.says)
			}
		})
	}
}

// TestFitWaits: the job does not begin before its container has the memory.
func TestFitWaits(t *testing.T) {
	w := resizing(t, nil)
	var looks atomic.Int32
	w.backend.memoryOf = func(*payload.Client) (int64, bool) {
		if looks.Add(1) < 5 {
			return 1024 * mib, true
		}
		return 4096 * mib, true
	}
	if _, err := w.bindSized(large); err != nil {
		t.Fatal(err)
	}
	if looks.Load() != 5 {
		t.Errorf("%d looks", looks.Load())
	}
}
