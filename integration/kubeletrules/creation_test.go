//go:build pool

package kubeletrules

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"podstarter/integration/harness"
)

// A container whose image string changed is ended and made anew, whatever the pod's
// restartPolicy says; the pod's other containers stay. The string counts: the same digest
// with another tag is another image.
//
// Source: container/helpers.go:HashContainer, pickFieldsToHash; kuberuntime/kuberuntime_manager.go:computePodActions.
//
// Relies: every binding, `k8sexec/bind.go`.
func TestChangedImageMakesTheContainerAnew(t *testing.T) {
	for _, policy := range []corev1.RestartPolicy{corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			p := newPod(t, func(o *corev1.Pod) { o.Spec.RestartPolicy = policy }, container("a", waiter), container("b", waiter))
			before, other := p.running("a"), p.running("b")
			p.bind("a", once(before.ImageID, "rule"), "x")
			after := p.runs("a", before.ContainerID)
			last := after.LastTerminationState.Terminated // nil if the kubelet has collected the old one
			if after.RestartCount != 1 || last != nil && last.ContainerID != before.ContainerID {
				t.Errorf("the new container is not the old one's successor\n%s", p.history(0))
			}
			if got := statusOf(p.now(), "b"); got.ContainerID != other.ContainerID || got.RestartCount != 0 {
				t.Errorf("the other container was made anew, too\n%s", p.history(0))
			}
		})
	}
}

// A patch that changes only annotations, or writes the same image string again, leaves
// the container as it is.
//
// Source: container/helpers.go:pickFieldsToHash.
//
// Relies: `k8sexec/await.go` has the old wrapper leave if the string stays the same, and patches an annotation to make the kubelet look.
func TestSameImageStringChangesNothing(t *testing.T) {
	t.Parallel()
	p := newPod(t, nil, container("a", waiter), container("b", waiter))
	a, b := p.running("a"), p.running("b")
	p.bind("a", pool.Image("busybox"), "other")
	// The kubelet has seen that when it has seen this.
	p.bind("b", once(b.ImageID, "rule"), "other")
	p.runs("b", b.ContainerID)
	if got := statusOf(p.now(), "a"); got.ContainerID != a.ContainerID || got.RestartCount != 0 {
		t.Errorf("the container was made anew\n%s", p.history(0))
	}
}

// The API server counts the changes of a pod's spec (metadata.generation), and not those
// of its annotations; a pod is created with 1.
//
// Source: pkg/registry/core/pod/strategy.go:PrepareForUpdate.
//
// Relies: `k8sexec/plan.go` takes a pod of generation 1 for one that has run no other image; `k8sexec/tracker.go` compares generations.
func TestGenerationCountsChangesOfTheSpec(t *testing.T) {
	t.Parallel()
	p := newPod(t, nil, container("a", waiter))
	created := p.now().Generation
	annotated := p.bind("a", pool.Image("busybox"), "x")
	changed := p.bind("a", pool.Image("debian"), "x")
	if diff := cmp.Diff([]int64{1, 1, 2}, []int64{created, annotated, changed}); diff != "" {
		t.Errorf("generation when created, annotated, with another image (-want +got):\n%s", diff)
	}
}

// A variable that is read from an annotation has the annotation's value of the moment in
// which the container is created. A later change shows in the next container only, and in
// that always: image and annotation of one patch come together.
//
// Source: kubelet_pods.go:makeEnvironmentVariables, podFieldSelectorRuntimeValue; called by kuberuntime/kuberuntime_container.go:startContainer.
//
// Relies: the nonce proves that the wrapper was started from the patched pod, `k8sexec/podapi/patch.go`.
func TestVariableIsReadAtCreation(t *testing.T) {
	t.Parallel()
	p := newPod(t, func(o *corev1.Pod) { o.Annotations = map[string]string{"rule": "one"} }, container("a", waiter), container("b", waiter))
	a, b := p.running("a"), p.running("b")
	process := processOf(t, a)
	// The kubelet has seen the annotation when it has seen b's image.
	p.bind("b", once(b.ImageID, "rule"), "two")
	p.runs("b", b.ContainerID)
	if env := environ(t, process); !slices.Contains(env, "RULE=one") {
		t.Errorf("the running container has %q", env)
	}
	p.release("a")
	again := p.runs("a", a.ContainerID)
	p.bind("a", once(again.ImageID, "rule-2"), "three")
	p.runs("a", again.ContainerID)
	var begins []string
	for _, line := range p.log() {
		if strings.HasPrefix(line, "a begins") {
			begins = append(begins, line)
		}
	}
	if diff := cmp.Diff([]string{"a begins one", "a begins two", "a begins three"}, begins); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The ID in a container's status, behind the runtime's name, is in the paths of its
// processes' control groups: 64 hexadecimal digits.
//
// Source: containerd internal/cri/server, generateID; kuberuntime/kuberuntime_container.go:toKubeContainerStatus.
//
// Relies: `k8sexec/identity.go` links a wrapper with a status.
func TestContainerIDIsInTheControlGroup(t *testing.T) {
	t.Parallel()
	p := newPod(t, nil, container("a", waiter))
	status := p.running("a")
	runtime, id, found := strings.Cut(status.ContainerID, "://")
	if !found || runtime == "" || len(id) != 64 {
		t.Fatalf("the container's ID is %q", status.ContainerID)
	}
	processOf(t, status)
}

// processOf finds the container's first process by its control group.
func processOf(t *testing.T, status corev1.ContainerStatus) int {
	t.Helper()
	_, id, _ := strings.Cut(status.ContainerID, "://")
	found, err := harness.Processes(func(q harness.Process) bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", q.PID))
		return err == nil && strings.Contains(string(text), id)
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Fatalf("no process has a control group of the container %s", id)
	}
	return found[0].PID
}

func environ(t *testing.T, pid int) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "environ"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// A tag beside a digest is not looked up: an image of the node starts under any tag, and
// the status names its digest with the repository of the reference.
//
// Source: github.com/distribution/reference:ParseDockerRef, by containerd internal/cri/server; kuberuntime/kuberuntime_container.go:toKubeContainerStatus.
//
// Relies: throw-away tags, `k8sexec/plan.go`; digests that are learned, `k8sexec/learn.go`.
func TestTagBesideDigestIsNotLookedUp(t *testing.T) {
	t.Parallel()
	p := newPod(t, nil, container("a", waiter))
	first := p.running("a")
	repository, _, _ := strings.Cut(first.ImageID, "@sha256:")
	if tagged := pool.Image("busybox"); !strings.HasPrefix(tagged, repository+":") {
		t.Fatalf("the image of %s is %q", tagged, first.ImageID)
	}
	p.bind("a", once(first.ImageID, "never-pushed"), "x")
	if second := p.runs("a", first.ContainerID); second.ImageID != first.ImageID {
		t.Errorf("image %q, want %q", second.ImageID, first.ImageID)
	}
}

// A container that is made anew finds what its pod's volumes and /dev/shm hold, and
// nothing of its own file system.
//
// Source: kubelet_pods.go:makeMounts; containerd internal/cri/server, sandbox_run_linux.go.
//
// Relies: control directory and sandbox stay; `wrapper/agent/leftovers.go` empties /dev/shm.
func TestVolumesOutliveTheContainer(t *testing.T) {
	t.Parallel()
	script := `ls -d /volume/x /dev/shm/x /tmp/x 2>/dev/null | tr '\n' ' ' >>/rule/seen; echo >>/rule/seen; touch /volume/x /dev/shm/x /tmp/x` + waiter
	c := container("a", script)
	c.VolumeMounts = []corev1.VolumeMount{{Name: "volume", MountPath: "/volume"}}
	p := newPod(t, func(o *corev1.Pod) {
		o.Spec.Volumes = append(o.Spec.Volumes, corev1.Volume{Name: "volume", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
	}, c)
	first := p.running("a")
	p.logs("a begins ")
	p.bind("a", once(first.ImageID, "rule"), "two")
	p.logs("a begins two")
	seen, err := os.ReadFile(filepath.Join(p.dir, "seen"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("\n/dev/shm/x /volume/x \n", string(seen)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
