package k8sexec

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podstarter/k8sexec/podapi/podapitest"
	"podstarter/payload"
)

// A container that is told to stop during its job gives reason and time, as far as the
// pod shows them.
func TestEnding(t *testing.T) {
	const grace = 40
	tests := []struct {
		name   string
		change func(*podapitest.Server)
		says   string
		least  time.Duration
		most   time.Duration
		known  bool // by the pod itself
	}{
		{"pod deleted", func(f *podapitest.Server) {
			f.Status("payload", func(p *corev1.Pod, _ *corev1.ContainerStatus) {
				p.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(time.Hour)}
				p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting"}}
			})
		}, "EvictionByEvictionAPI", time.Hour / 2, time.Hour, true},
		{"time is over already", func(f *podapitest.Server) {
			f.Status("payload", func(p *corev1.Pod, _ *corev1.ContainerStatus) {
				p.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(-time.Minute)}
			})
		}, "being deleted", 0, 0, true},
		{"active deadline", func(f *podapitest.Server) {
			f.Status("payload", func(p *corev1.Pod, _ *corev1.ContainerStatus) {
				limit := int64(60)
				p.Spec.ActiveDeadlineSeconds = &limit
				p.Status.StartTime = &metav1.Time{Time: time.Now().Add(-time.Minute)}
			})
		}, "activeDeadlineSeconds are over", time.Second, grace * time.Second, true},
		{"nobody says why", func(*podapitest.Server) {}, "taken down", time.Second, grace * time.Second, false},
		{"API server away", func(f *podapitest.Server) {
			f.Mu.Lock()
			defer f.Mu.Unlock()
			f.Fail = func(string, int) error { return errors.New("away") }
		}, "taken down", time.Second, grace * time.Second, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			seconds := int64(grace)
			w.api.Pod.Spec.TerminationGracePeriodSeconds = &seconds
			l, c := w.bind("registry.example.com/u/a:1")
			defer release(t, l)
			tt.change(w.api)
			if n, doomed := c.Doom(t.Context()); doomed != tt.known || doomed && !strings.Contains(n.Reason, tt.says) {
				t.Errorf("Doom: %+v, %t; want %t, %q", n, doomed, tt.known, tt.says)
			}
			w.wrapper("payload").tell(payload.Message{Stopping: true})
			n := <-c.Ending()
			if !strings.Contains(n.Reason, tt.says) || n.Left < tt.least || n.Left > tt.most {
				t.Errorf("%+v; want %q, between %v and %v", n, tt.says, tt.least, tt.most)
			}
			select {
			case err := <-c.Lost():
				t.Errorf("lost already: %v", err)
			default:
			}
		})
	}
}

// A notice that nobody has taken is what is known of the container's end, also if the pod tells nothing of it.
func TestDoomByNotice(t *testing.T) {
	w := newWorld(t, nil)
	l, c := w.bind("registry.example.com/u/a:1")
	defer release(t, l)
	w.wrapper("payload").tell(payload.Message{Stopping: true})
	eventually(t, "a notice", func() bool { return len(c.Ending()) == 1 })
	before := w.api.Count("get")
	if n, doomed := c.Doom(t.Context()); !doomed || !strings.Contains(n.Reason, "taken down") {
		t.Errorf("%+v, %t", n, doomed)
	}
	if asked := w.api.Count("get") - before; asked != 0 {
		t.Errorf("the API server was asked %d times", asked)
	}
}
