//go:build pool

package kubeletrules

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// sidecar is container for an init container that goes on.
func sidecar(name, script string) corev1.Container {
	c, always := container(name, script), corev1.ContainerRestartPolicyAlways
	c.RestartPolicy = &always
	return c
}

// A sidecar whose image string changed is ended and made anew, too, whatever the pod's
// restartPolicy says; the pod's other containers stay.
//
// Source: kuberuntime/kuberuntime_container.go:computeInitContainerActions.
//
// Relies: bindings of payload containers that are sidecars, `k8sexec/bind.go`.
func TestChangedImageMakesTheSidecarAnew(t *testing.T) {
	for _, policy := range []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			p := newPod(t, func(o *corev1.Pod) { o.Spec.RestartPolicy = policy }, sidecar("a", waiter), sidecar("b", waiter), container("m", waiter))
			main := p.running("m")
			before, other := p.running("a"), p.running("b")
			p.bind("a", once(before.ImageID, "rule"), "x")
			after := p.runs("a", before.ContainerID)
			last := after.LastTerminationState.Terminated // nil if the kubelet has collected the old one
			if after.RestartCount != 1 || last != nil && last.ContainerID != before.ContainerID {
				t.Errorf("the new container is not the old one's successor\n%s", p.history(0))
			}
			for _, was := range []corev1.ContainerStatus{main, other} {
				if got := statusOf(p.now(), was.Name); got.ContainerID != was.ContainerID || got.RestartCount != 0 {
					t.Errorf("container %s was made anew, too\n%s", was.Name, p.history(0))
				}
			}
		})
	}
}

// The status of a sidecar says why its image cannot be pulled only if the container before
// ended with another exit code than 0 and the pod's restartPolicy is not Never; else it shows the end of
// that container. The next image that can be pulled runs in any case.
//
// Source: kubelet_pods.go:convertToAPIContainerStatuses; container/helpers.go:ShouldContainerBeRestarted (a pod's Never counts for its sidecars without the feature ContainerRestartRules, off by default in 1.34).
//
// Relies: the wrapper's exit code, `wrapper/agent/main.go`; `-check` refuses Never, `k8sexec/audit/check_pod.go`.
func TestSidecarSaysWhyItsImageDoesNotCome(t *testing.T) {
	const said, silent = "said", "silent"
	for _, c := range []struct {
		policy corev1.RestartPolicy
		exit   string
		want   string
	}{
		{corev1.RestartPolicyAlways, "exit 7", said},
		{corev1.RestartPolicyOnFailure, "exit 7", said},
		{corev1.RestartPolicyAlways, "exit 0", silent},
		{corev1.RestartPolicyOnFailure, "exit 0", silent},
		{corev1.RestartPolicyNever, "exit 7", silent},
	} {
		t.Run(string(c.policy)+" "+c.exit, func(t *testing.T) {
			t.Parallel()
			none := newRegistry(t).image("none:1")
			p := newPod(t, func(o *corev1.Pod) { o.Spec.RestartPolicy = c.policy }, sidecar("a", strings.Replace(waiter, "exit 7", c.exit, 1)), container("m", waiter))
			p.running("m")
			good := p.running("a")
			from := len(p.states)
			p.bind("a", none, "x")
			if c.want == said {
				p.waits("a", "ErrImagePull", `"`+none+`"`)
			} else {
				p.until("the end of the old container", func(s *corev1.Pod) bool { return statusOf(s, "a").State.Terminated != nil })
				actsOnAnother(t)
			}
			p.bind("a", once(good.ImageID, "rule"), "x")
			p.runs("a", good.ContainerID)
			if got := p.firstComplaint(from, "a", none); got == nil != (c.want == silent) {
				t.Errorf("the status says %+v\n%s", got, p.history(from))
			}
		})
	}
}

// A pod of restartPolicy OnFailure has succeeded when its own containers have, whatever its
// sidecars exit with. These are told to end only then.
//
// Source: kubelet_pods.go:getPhase; kuberuntime/kuberuntime_manager.go:computePodActions.
//
// Relies: a Job whose pilot is done, `deploy/components/sidecars`.
func TestPodEndsWithItsOwnContainers(t *testing.T) {
	t.Parallel()
	p := newPod(t, func(o *corev1.Pod) { o.Spec.RestartPolicy = corev1.RestartPolicyOnFailure },
		sidecar("a", waiter), container("m", "mkfifo /rule/m.pipe; echo m begins >>/rule/log; : </rule/m.pipe; echo m ends >>/rule/log"))
	p.running("m")
	p.logs("m begins")
	p.release("m")
	p.until("the pod's end", func(s *corev1.Pod) bool { return s.Status.Phase == corev1.PodSucceeded })
	if diff := cmp.Diff([]string{"a begins ", "m begins", "m ends", "a gets TERM"}, p.log()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if end := statusOf(p.now(), "a").State.Terminated; end == nil || end.ExitCode != 7 {
		t.Errorf("the sidecar's end: %+v\n%s", end, p.history(0))
	}
}

// When a pod is deleted, its sidecars are told to end when its own containers have ended,
// and the last sidecar first.
//
// Source: kuberuntime/kuberuntime_container.go:killContainersWithSyncResult; kuberuntime/kuberuntime_termination_order.go.
//
// Relies: a starter whose payload container is a sidecar asks why its job is vacated, `k8sexec/notice.go`.
func TestSidecarsAreToldLast(t *testing.T) {
	t.Parallel()
	p := newPod(t, nil, sidecar("a", waiter), sidecar("b", waiter), container("m", stubborn))
	p.running("m")
	p.logs("m begins ")
	body, err := api.open(p.ctx, http.MethodDelete, p.name, "gracePeriodSeconds=600", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	body.Close()
	p.logs("m gets TERM")
	actsOnAnother(t)
	before := p.log()
	p.release("m")
	p.logs("a gets TERM")
	if diff := cmp.Diff(append(slices.Clone(before), "b gets TERM", "a gets TERM"), p.log()); diff != "" || slices.Contains(before, "a gets TERM") {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
