package k8sexec

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"podstarter/payload"
)

func TestEndPod(t *testing.T) {
	deadline := func(n int64) *int64 { return &n }
	tests := map[string]struct {
		change  func(*corev1.Pod)
		patches int
	}{
		"no deadline":      {func(*corev1.Pod) {}, 1},
		"a later deadline": {func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = deadline(3600) }, 1},
		"ends already":     {func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = deadline(1) }, 0},
		"is being deleted": {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Now()} }, 0},
		"has ended":        {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			tt.change(w.api.Pod)
			if err := w.backend.EndPod(context.Background()); err != nil {
				t.Fatal(err)
			}
			if n := w.api.Count("patch"); n != tt.patches {
				t.Errorf("%d patches, want %d", n, tt.patches)
			}
			pod := w.api.Snapshot()
			if tt.patches > 0 && (pod.Spec.ActiveDeadlineSeconds == nil || *pod.Spec.ActiveDeadlineSeconds != 1) {
				t.Errorf("the deadline is %v, want 1", pod.Spec.ActiveDeadlineSeconds)
			}
		})
	}
}

// TestEndPodThatEnds: a deadline would make a failure of a pod that is about to succeed.
func TestEndPodThatEnds(t *testing.T) {
	w := newWorld(t, nil)
	w.api.Pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	if err := w.backend.EndPod(context.Background()); err == nil || !strings.Contains(err.Error(), "ends by itself") {
		t.Errorf("got %v, want that it ends by itself", err)
	}
	if n := w.api.Count("patch"); n > 0 {
		t.Errorf("%d patches", n)
	}
}

func TestEndPodForbidden(t *testing.T) {
	w := newWorld(t, nil)
	w.failVerb("patch", apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "pilot-0", errors.New("no")))
	err := w.backend.EndPod(context.Background())
	var v *payload.Verdict
	if !errors.As(err, &v) || v.Blame != payload.Pilot {
		t.Errorf("got %v, want the pilot's verdict", err)
	}
}
