package k8sexec

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podstarter/k8sexec/options"
	"podstarter/k8sexec/verdict"
	"podstarter/payload"
)

func TestLost(t *testing.T) {
	ended := func(n int, reason string, code int32) *corev1.ContainerStateTerminated {
		return &corev1.ContainerStateTerminated{ContainerID: "containerd://" + testID(n), Reason: reason, ExitCode: code, FinishedAt: metav1.Now()}
	}
	tests := []struct {
		name    string
		change  func(*corev1.Pod, *corev1.ContainerStatus)
		blame   payload.Blame
		subcode int
		says    string
		limit   int64 // of memory
	}{
		{"out of memory", func(_ *corev1.Pod, s *corev1.ContainerStatus) {
			s.State.Running, s.State.Terminated = nil, ended(1, "OOMKilled", 137)
			s.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")}}
		},
			payload.User, verdict.SubcodeOutOfMemory, "more memory", 256 << 20},
		{"restarted already", func(p *corev1.Pod, s *corev1.ContainerStatus) {
			s.ContainerID = "containerd://" + testID(2)
			s.LastTerminationState.Terminated = ended(1, "Error", 1)
			p.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}
		}, payload.Site, 0, "exit code 1 (Error)", 1 << 30},
		{"evicted", func(p *corev1.Pod, _ *corev1.ContainerStatus) {
			p.Status.Phase, p.Status.Reason, p.Status.Message = corev1.PodFailed, "Evicted", "low on memory"
		}, payload.Pilot, 0, "low on memory", 0},
		{"preempted", func(p *corev1.Pod, _ *corev1.ContainerStatus) {
			p.DeletionTimestamp = &metav1.Time{Time: time.Now()}
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "PreemptionByScheduler", Message: "preempting"}}
		}, payload.Pilot, 0, "PreemptionByScheduler", 0},
		{"another container ended", func(_ *corev1.Pod, s *corev1.ContainerStatus) {
			s.LastTerminationState.Terminated = ended(77, "OOMKilled", 137)
		},
			payload.Site, 0, "does not tell why", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, func(o *options.Options) { o.ThrowawayTags = false })
			l, c := w.bind("registry.example.com/u/a:1")
			defer release(t, l)
			w.broken.Store(true)
			w.wrapper("payload").stop()
			w.api.Status("payload", tt.change)
			err := <-c.Lost()
			v := verdictOf(t, err)
			if v.Blame != tt.blame || v.Subcode != tt.subcode || !strings.Contains(v.Message, tt.says) || v.MemoryLimit != tt.limit {
				t.Errorf("%v/%d: %s, limit %d", v.Blame, v.Subcode, v, v.MemoryLimit)
			}
		})
	}
	t.Run("API server away", func(t *testing.T) {
		w := newWorld(t, nil)
		l, c := w.bind("registry.example.com/u/a:1")
		defer release(t, l)
		w.broken.Store(true)
		w.api.Mu.Lock()
		w.api.Fail = func(string, int) error { return errors.New("away") }
		w.api.Mu.Unlock()
		w.wrapper("payload").stop()
		if v := verdictOf(t, <-c.Lost()); v.Blame != payload.Site || v.Reason != verdict.ReasonContainerEnd {
			t.Errorf("%s", v)
		}
	})
}
