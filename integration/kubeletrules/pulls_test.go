//go:build pool

package kubeletrules

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// firstComplaint is why a container waits in the first state, from that number on, that
// gives a reason with the image in its message.
func (p *pod) firstComplaint(from int, container, image string) *corev1.ContainerStateWaiting {
	for _, s := range p.states[from:] {
		if w := statusOf(s, container).State.Waiting; w != nil && strings.Contains(w.Message, `"`+image+`"`) {
			return w
		}
	}
	return nil
}

// actsOnAnother waits until the kubelet has acted on two changes of another pod, the second of
// which came later than all that the test has done before.
func actsOnAnother(t *testing.T) {
	t.Helper()
	other := newPod(t, nil, container("c", waiter))
	c := other.running("c")
	for _, tag := range []string{"one", "two"} {
		other.bind("c", once(c.ImageID, tag), "x")
		c = other.runs("c", c.ContainerID)
	}
}

// The kubelet waits before it pulls an image again that it could not pull, and counts by
// pod and image string: a second container of the pod with the same string waits without
// a try; another string, with nothing but another tag, is tried at once.
//
// Source: images/image_manager.go:pullImage, backOffKey.
//
// Relies: a failed image does not delay the next job's, `k8sexec/bind.go`; the plain reference after a refused one.
func TestPullBackOffGoesByPodAndImageString(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	one, two, three := r.image("none:1"), r.image("none:2"), r.image("none:3")
	of := func(name, image string) corev1.Container {
		c := container(name, waiter)
		c.Image = image
		return c
	}
	p := newPod(t, nil, of("a", one), of("b", one), of("c", two))
	// The kubelet tries the containers in turn, and then shows the reasons of all.
	p.waits("c", "ErrImagePull", `"`+two+`"`)
	for _, c := range []struct{ name, image, reason string }{{"a", one, "ErrImagePull"}, {"b", one, "ImagePullBackOff"}, {"c", two, "ErrImagePull"}} {
		if got := p.firstComplaint(0, c.name, c.image); got == nil || got.Reason != c.reason {
			t.Errorf("container %s, image %s: first %+v, want %s\n%s", c.name, c.image, got, c.reason, p.history(0))
		}
	}
	from := len(p.states)
	p.bind("b", three, "x")
	p.until("the third image", func(*corev1.Pod) bool { return p.firstComplaint(from, "b", three) != nil })
	if got := p.firstComplaint(from, "b", three); got.Reason != "ErrImagePull" {
		t.Errorf("after the patch: %s %q\n%s", got.Reason, got.Message, p.history(from))
	}
	other := newPod(t, nil, of("a", one))
	other.until("another pod's complaint", func(*corev1.Pod) bool { return other.firstComplaint(0, "a", one) != nil })
	if got := other.firstComplaint(0, "a", one); got.Reason != "ErrImagePull" {
		t.Errorf("another pod: %s %q\n%s", got.Reason, got.Message, other.history(0))
	}
}

// What the status says of a pull that failed names the image as the pod's spec has it:
// first ErrImagePull with the runtime's words, then ImagePullBackOff with the same words
// in it.
//
// Source: images/image_manager.go:pullImage, prevPullErrMsg; kubelet_pods.go:convertToAPIContainerStatuses.
//
// Relies: the rules on pulls, `k8sexec/verdict/registry.go`; `k8sexec/tracker.go` tells by the name which image a complaint is about.
func TestPullErrorsNameTheImage(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	image := r.image("none:1")
	c := container("a", waiter)
	c.Image = image
	p := newPod(t, nil, c)
	words := p.waits("a", "ErrImagePull", `"`+image+`"`).State.Waiting.Message
	if !strings.Contains(words, "not found") {
		t.Errorf("the runtime's words are %q", words)
	}
	again := p.waits("a", "ImagePullBackOff", `"`+image+`"`).State.Waiting.Message
	if !strings.Contains(again, words) {
		t.Errorf("%q does not repeat %q", again, words)
	}
}

// The old container has ended before the new image is pulled, and the reason why a pull
// failed is shown with the old container as the last one.
//
// Source: kuberuntime/kuberuntime_manager.go:SyncPod, steps 3 and 7.
//
// Relies: a container whose image cannot be pulled is empty, `k8sexec/settle.go`; `k8sexec/tracker.go`, remains of earlier containers.
func TestOldContainerEndsBeforeThePull(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	p := newPod(t, nil, container("a", waiter))
	old := p.running("a")
	p.logs("a begins ")
	p.bind("a", r.image("hang:1"), "x")
	r.waitPull(p, "hang:1")
	if log := p.log(); log[len(log)-1] != "a gets TERM" {
		t.Errorf("when the pull began: %q", log)
	}
	close(r.let)
	p.waits("a", "ErrImagePull", "")
	if last := p.end("a", old.ContainerID); last != nil && last.ExitCode != 7 {
		t.Errorf("the last container is %+v, want %s with exit code 7", last, old.ContainerID)
	}
}

// The kubelet works on one change of a pod at a time: as long as it pulls one container's
// image, another container of the pod is not made anew, while those of other pods are.
//
// Source: pod_workers.go:podWorkerLoop.
//
// Relies: a binding that takes too long is not the image's fault, `k8sexec/verdict/container.go:ruleTimeout`; docs/developer/turnover.md.
func TestPullHoldsThePodsOtherChanges(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	p := newPod(t, nil, container("a", waiter), container("b", waiter))
	p.running("a")
	b := p.running("b")
	p.logs("b begins ")
	p.bind("a", r.image("hang:1"), "x")
	r.waitPull(p, "hang:1")
	seen := len(p.states)
	p.bind("b", once(b.ImageID, "rule"), "two")
	actsOnAnother(t)
	if strings.Contains(strings.Join(p.log(), "\n"), "b begins two") {
		t.Errorf("the container was made anew during the pull: %q\n%s", p.log(), p.history(seen))
	}
	close(r.let)
	p.runs("b", b.ContainerID)
	if log := p.log(); log[len(log)-1] != "b begins two" {
		t.Errorf("after the pull: %q", log)
	}
}

// While the kubelet pulls an image, the pod's status stays as it was when the kubelet took up
// that change: the container that the pull is for shows as running, with its old ID, although
// it has ended. status.observedGeneration is the generation of that change, and stays behind
// that of later ones until the pull has ended.
//
// Source: kubelet.go:SyncPod (the status is set before the runtime is called); status/status_manager.go:SetPodStatus.
//
// Relies: `k8sexec/tracker.go` tells a wait for a pull of its own from a wait for another container's.
func TestStatusStandsStillDuringAPull(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	p := newPod(t, nil, container("a", waiter), container("b", waiter))
	a, b := p.running("a"), p.running("b")
	pulled := p.bind("a", r.image("hang:1"), "x")
	r.waitPull(p, "hang:1")
	p.until("the change to be taken up", func(s *corev1.Pod) bool { return s.Status.ObservedGeneration == pulled })
	seen := len(p.states)
	later := p.bind("b", once(b.ImageID, "rule"), "two")
	actsOnAnother(t)
	// All states up to this change have been seen then.
	p.patch(map[string]any{"metadata": map[string]any{"annotations": map[string]string{"mark": "x"}}})
	p.until("the mark", func(s *corev1.Pod) bool { return s.Annotations["mark"] == "x" })
	for _, s := range p.states[seen:] {
		for name, id := range map[string]string{"a": a.ContainerID, "b": b.ContainerID} {
			if c := statusOf(s, name); c.State.Running == nil || c.ContainerID != id || s.Status.ObservedGeneration != pulled {
				t.Errorf("during the pull, container %s is not shown as before it\n%s", name, p.history(seen))
			}
		}
	}
	if log := p.log(); log[len(log)-1] != "a gets TERM" {
		t.Errorf("during the pull: %q", log)
	}
	close(r.let)
	p.until("the later change to be taken up", func(s *corev1.Pod) bool { return s.Status.ObservedGeneration >= later })
	p.runs("b", b.ContainerID)
}

// A pull that hangs is not broken off when the pod gets another image in place of the one that
// is pulled. When the pull has ended, the kubelet goes by the latest state of the pod; it never
// tries the images in between.
//
// Source: pod_workers.go:UpdatePod, podWorkerLoop.
//
// Relies: nothing; a starter that gives up (`k8sexec/bind.go`) cannot free the pod for the next job.
func TestPatchDoesNotEndAPull(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	p := newPod(t, nil, container("a", waiter))
	old := p.running("a")
	p.bind("a", r.image("hang:1"), "x")
	r.waitPull(p, "hang:1")
	p.bind("a", r.image("none:1"), "y")
	p.bind("a", once(old.ImageID, "rule"), "two")
	actsOnAnother(t)
	if log := p.log(); log[len(log)-1] != "a gets TERM" {
		t.Errorf("during the pull: %q", log)
	}
	close(r.let)
	p.runs("a", old.ContainerID)
	p.logs("a begins two")
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := r.asked["none:1"]; n != 0 {
		t.Errorf("the image in between was asked for %d times", n)
	}
}

// A deadline that passes while a pull hangs ends the pod only when the pull has ended. Until
// then its containers run on.
//
// Source: kubelet.go:SyncPod, context.WithoutCancel; active_deadline.go:ShouldSync.
//
// Relies: `k8sexec/endpod.go`; docs/operator/troubleshooting.md.
func TestDeadlineWaitsForAPull(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	p := newPod(t, nil, container("a", waiter), container("b", waiter))
	p.running("a")
	p.running("b")
	p.bind("a", r.image("hang:1"), "x")
	r.waitPull(p, "hang:1")
	soon := map[string]any{"spec": map[string]any{"activeDeadlineSeconds": 1}}
	p.patch(soon)
	// Another pod that gets its deadline later ends.
	other := newPod(t, nil, container("c", waiter))
	other.running("c")
	other.patch(soon)
	other.until("the other pod's end", func(s *corev1.Pod) bool { return s.Status.Phase == corev1.PodFailed })
	if state, err := api.ask(p.ctx, http.MethodGet, p.name, "", "", nil); err != nil || state.Status.Phase != corev1.PodRunning {
		t.Errorf("while its pull hangs, the pod is %+v (%v)", state, err)
	}
	if log := p.log(); slices.Contains(log, "b gets TERM") {
		t.Errorf("during the pull: %q", log)
	}
	close(r.let)
	p.until("the pod's end", func(s *corev1.Pod) bool { return s.Status.Phase == corev1.PodFailed })
	if log := p.log(); !slices.Contains(log, "b gets TERM") {
		t.Errorf("after the pull: %q", log)
	}
}

// A pull that hangs is not broken off when its pod is deleted: the pod stays until the
// pull has ended, and its other containers run on, whatever the grace period.
//
// Source: kubelet.go:SyncPod, context.WithoutCancel, also in Kubernetes 1.37.
//
// Relies: nothing, but `integration/pool/stuck.go` restarts the kubelet to get rid of such a pod; if this test fails, it no longer must. docs/operator/troubleshooting.md
func TestHungPullOutlivesThePodsDeletion(t *testing.T) {
	t.Parallel()
	r := newRegistry(t)
	p := newPod(t, nil, container("a", waiter), container("b", waiter))
	p.running("a")
	p.running("b")
	p.bind("a", r.image("hang:1"), "x")
	r.waitPull(p, "hang:1")
	body, err := api.open(p.ctx, http.MethodDelete, p.name, "gracePeriodSeconds=1", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	body.Close()
	// The kubelet ends another pod that is deleted later.
	other := newPod(t, nil, container("c", waiter))
	other.running("c")
	other.delete()
	if state, err := api.ask(p.ctx, http.MethodGet, p.name, "", "", nil); err != nil || state.DeletionTimestamp == nil {
		t.Errorf("while its pull hangs, the deleted pod is %+v (%v)", state, err)
	}
	if log := p.log(); slices.Contains(log, "b gets TERM") {
		t.Errorf("during the pull: %q", log)
	}
	close(r.let)
	p.delete()
	if log := p.log(); !slices.Contains(log, "b gets TERM") {
		t.Errorf("after the pull: %q", log)
	}
}
