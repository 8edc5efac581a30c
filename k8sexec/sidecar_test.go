package k8sexec

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podstarter/k8sexec/options"
	"podstarter/k8sexec/pilotstop"
	"podstarter/k8sexec/podapi"
	"podstarter/payload"
	"podstarter/payload/backendtest"
)

// toSidecars puts the payload containers of a pod below its initContainers, with a
// restartPolicy of their own, and gives the pilot its preStop hook.
func toSidecars(pod *corev1.Pod) {
	isPayload := func(name string) bool { return name == "payload" || name == "payload-2" }
	var stay []corev1.Container
	for _, c := range pod.Spec.Containers {
		if isPayload(c.Name) {
			c.RestartPolicy = ptr(corev1.ContainerRestartPolicyAlways)
			pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
		} else {
			c.Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"/opt/podstarter/bin/condor_pod_starter", "-pilot-stops"}}}}
			stay = append(stay, c)
		}
	}
	pod.Spec.Containers = stay
	for _, s := range pod.Status.ContainerStatuses {
		if isPayload(s.Name) {
			pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, s)
		}
	}
	pod.Status.ContainerStatuses = slices.DeleteFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return isPayload(s.Name) })
}

// TestSidecarBackend: payload containers that are sidecars do all that others do.
func TestSidecarBackend(t *testing.T) {
	backendtest.Run(t, func(t *testing.T) backendtest.Fixture { return newFixture(t, toSidecars) })
}

// TestSidecarIsRemembered: which list a container is in is asked once in a pod's life.
func TestSidecarIsRemembered(t *testing.T) {
	w := newWorld(t, func(o *options.Options) { o.Containers = o.Containers[:1] })
	toSidecars(w.api.Pod)
	for n, image := range []string{"registry.example.com/u/tool:1", "registry.example.com/u/tool:2"} {
		lease, err := w.backend.Lease(t.Context(), payload.Wish{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := lease.Bind(t.Context(), payload.BindRequest{Image: image, Owner: "alice", Activation: "a"}); err != nil {
			t.Fatal(err)
		}
		_ = lease.Release(t.Context())
		if got := w.api.Count("get"); got != 1 {
			t.Errorf("%d GETs after binding %d, want 1", got, n+1)
		}
		if got := podapi.SpecOf(w.api.Snapshot(), "payload").Image; got != image {
			t.Errorf("image %s, want %s", got, image)
		}
	}
}

// TestContainerWithARestartPolicy: a container of the pod can have a restartPolicy, too (KEP-5307),
// and is no sidecar.
func TestContainerWithARestartPolicy(t *testing.T) {
	w := newWorld(t, nil)
	for i := range w.api.Pod.Spec.Containers {
		w.api.Pod.Spec.Containers[i].RestartPolicy = ptr(corev1.ContainerRestartPolicyAlways)
	}
	l, _ := w.bind("registry.example.com/u/a:1")
	defer release(t, l)
	if known := w.known("payload"); known.Sidecar {
		t.Errorf("taken for a sidecar: %+v", known)
	}
}

// TestSuspicion: a sidecar is not told when its pod ends. Its starter asks when the job is told to end, which
// may have another reason.
func TestSuspicion(t *testing.T) {
	deleted := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(time.Hour)} }
	for _, tt := range []struct {
		name     string
		sidecars bool
		change   func(*corev1.Pod)
		want     string // of the notice; empty if there is none
	}{
		{"nothing", true, func(*corev1.Pod) {}, ""},
		{"deleted", true, deleted, "being deleted"},
		{"node shut down", true, func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "TerminationByKubelet"}}
		}, "taken down"},
		{"deadline", true, func(p *corev1.Pod) {
			p.Spec.ActiveDeadlineSeconds, p.Status.StartTime = ptr(int64(1)), &metav1.Time{Time: time.Now().Add(-time.Minute)}
		}, "activeDeadlineSeconds"},
		{"container of the pod, which is told", false, deleted, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			if tt.sidecars {
				toSidecars(w.api.Pod)
			}
			l, c := w.bind("registry.example.com/u/a:1")
			defer release(t, l)
			w.api.Status("payload", func(p *corev1.Pod, _ *corev1.ContainerStatus) { tt.change(p) })
			before := w.api.Count("get")
			c.Suspect()
			if tt.want != "" {
				select {
				case n := <-c.Ending():
					if !strings.Contains(n.Reason, tt.want) || n.Left <= 0 {
						t.Errorf("%+v, want %q", n, tt.want)
					}
				case <-time.After(10 * time.Second):
					t.Fatal("no notice")
				}
				c.Suspect() // again changes nothing
				return
			}
			if tt.sidecars {
				eventually(t, "a look at the pod", func() bool { return w.api.Count("get") > before })
			}
			select {
			case n := <-c.Ending():
				t.Errorf("reported as ending: %+v", n)
			default:
			}
		})
	}
}

// TestPilotTold: the word of the pilot's preStop hook reaches a job that nobody vacates, also if the pod says only later that it ends, and
// that of an earlier moment one that began since.
func TestPilotTold(t *testing.T) {
	deleted := func(p *corev1.Pod, _ *corev1.ContainerStatus) {
		p.DeletionTimestamp = &metav1.Time{Time: time.Now().Add(time.Hour)}
	}
	for _, tt := range []struct {
		name   string
		told   []string // the order of events
		notice bool
	}{
		{"while the job runs", []string{"bind", "delete", "tell"}, true},
		{"before the job began", []string{"tell", "delete", "bind"}, true},
		{"before the pod says so", []string{"bind", "tell", "look", "delete"}, true},
		{"and the pod goes on", []string{"bind", "tell", "look", "look"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.backend.timing.notice = time.Second
			toSidecars(w.api.Pod)
			var c payload.Container
			looks := 0
			for _, step := range tt.told {
				switch step {
				case "bind":
					var l payload.Lease
					l, c = w.bind("registry.example.com/u/a:1")
					defer release(t, l)
					looks = w.api.Count("get")
				case "delete":
					w.api.Status("payload", deleted)
				case "tell":
					if err := pilotstop.Announce(w.backend.opt.PrivateDir); err != nil {
						t.Fatal(err)
					}
				case "look":
					looks++
					eventually(t, "a look at the pod", func() bool { return w.api.Count("get") >= looks })
				}
			}
			select {
			case n := <-c.Ending():
				if !tt.notice {
					t.Errorf("reported as ending: %+v", n)
				}
			case <-time.After(map[bool]time.Duration{true: 10 * time.Second}[tt.notice]):
				if tt.notice {
					t.Error("no notice")
				}
			}
		})
	}
}
