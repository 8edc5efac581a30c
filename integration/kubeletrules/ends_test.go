//go:build pool

package kubeletrules

import (
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// stubborn is a script that writes down a SIGTERM and ends with 7 only when its pipe is
// opened after that.
const stubborn = `
[ -p /rule/$0.pipe ] || mkfifo /rule/$0.pipe
trap 'echo "$0 gets TERM" >>/rule/log; : </rule/$0.pipe; exit 7' TERM
echo "$0 begins $RULE" >>/rule/log
sleep 3600 & wait $!`

// A container that ended is started again at once the first time, and after a pause from
// the second time on. The kubelet counts by container and image string: with another
// string it begins anew, and for one that comes back it goes on with a longer
// pause.
//
// Source: kuberuntime/kuberuntime_manager.go:doBackOff; kuberuntime/helpers.go:GetBackoffKey.
//
// Relies: throw-away tags, `k8sexec/imageref/imageref.go`; docs/developer/turnover.md.
func TestRestartBackOffGoesByImageString(t *testing.T) {
	t.Parallel()
	p := newPod(t, func(o *corev1.Pod) { o.Annotations = map[string]string{"rule": "one"} },
		container("a", `printf "$RULE" >/dev/termination-log; echo "$RULE" >>/rule/log; exit 3`))
	// pause is that of the kubelet after the end of a container with this annotation, and how often it had started one again.
	pause := func(annotation string) (time.Duration, int32) {
		t.Helper()
		state := p.until("a pause after "+annotation, func(s *corev1.Pod) bool {
			status := statusOf(s, "a")
			w, last := status.State.Waiting, status.LastTerminationState.Terminated
			return w != nil && w.Reason == "CrashLoopBackOff" && last != nil && last.Message == annotation
		})
		message := statusOf(state, "a").State.Waiting.Message
		text, _, _ := strings.Cut(strings.TrimPrefix(message, "back-off "), " restarting failed container=a ")
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Errorf("the message is %q", message)
		}
		return d, statusOf(state, "a").RestartCount
	}
	first, restarts := pause("one")
	if restarts != 1 {
		t.Errorf("%d containers were started again before the first pause, want 1", restarts)
	}
	p.bind("a", once(statusOf(p.now(), "a").ImageID, "rule"), "two")
	if again, _ := pause("two"); again != first {
		t.Errorf("another string's first pause is %s, want %s", again, first)
	}
	p.bind("a", pool.Image("busybox"), "three")
	if back, _ := pause("three"); back <= first {
		t.Errorf("the pause of the string that came back is %s, want more than %s\n%s", back, first, p.history(0))
	}
}

// While the old container still runs, the kubelet publishes which state of the pod's spec
// it goes by (status.observedGeneration); then comes the new container, in no state
// without the old one as the last. Now and then there is no last one at all: each minute the
// kubelet removes dead containers but the newest of a name, and it counts one that is made and not yet started as dead.
//
// Source: status/status_manager.go:SetPodStatus; kubelet.go:SyncPod; kubelet_pods.go:convertToAPIContainerStatuses;
// kuberuntime/kuberuntime_gc.go:evictableContainers.
//
// Relies: `k8sexec/await.go:dismiss` has the old wrapper leave then; `k8sexec/container.go:exitIn` finds how a job's container ended.
func TestStatusShowsTheSpecThenTheContainers(t *testing.T) {
	t.Parallel()
	p := newPod(t, nil, container("a", stubborn))
	old := p.running("a")
	p.logs("a begins ")
	generation := p.bind("a", once(old.ImageID, "rule"), "two")
	p.logs("a gets TERM")
	p.until("the new generation beside the old container", func(s *corev1.Pod) bool {
		c := statusOf(s, "a")
		return s.Status.ObservedGeneration > 0 && s.Status.ObservedGeneration >= generation && c.State.Running != nil && c.ContainerID == old.ContainerID
	})
	p.release("a")
	after := p.runs("a", old.ContainerID)
	if after.RestartCount != 1 {
		t.Errorf("restart count %d, want 1", after.RestartCount)
	}
	if after.LastTerminationState.Terminated == nil {
		t.Log("the kubelet has collected the old container while it started the new one")
	}
	for _, s := range p.states {
		c := statusOf(s, "a")
		if c.ContainerID != after.ContainerID {
			continue
		}
		last := c.LastTerminationState.Terminated
		if last == nil && after.LastTerminationState.Terminated == nil {
			last = &corev1.ContainerStateTerminated{ContainerID: old.ContainerID, ExitCode: 7} // collected
		}
		if s.Status.ObservedGeneration < generation || last == nil || last.ContainerID != old.ContainerID || last.ExitCode != 7 {
			t.Errorf("generation %d is seen as %d, and the last container is %+v\n%s", generation, s.Status.ObservedGeneration, last, p.history(0))
		}
	}
}

// A container that a patch ends gets SIGTERM, and SIGKILL after the pod's grace period. The
// new one is made after its end.
//
// Source: kuberuntime/kuberuntime_container.go:killContainer, setTerminationGracePeriod.
//
// Relies: a wrapper that does not leave ends all the same, `k8sexec/await.go:dismiss`.
func TestPatchKillsAfterTheGracePeriod(t *testing.T) {
	t.Parallel()
	grace := int64(3)
	p := newPod(t, func(o *corev1.Pod) { o.Spec.TerminationGracePeriodSeconds = &grace }, container("a", stubborn))
	old := p.running("a")
	p.logs("a begins ")
	p.bind("a", once(old.ImageID, "rule"), "two")
	after := p.runs("a", old.ContainerID)
	p.logs("a begins two")
	if diff := cmp.Diff([]string{"a begins ", "a gets TERM", "a begins two"}, p.log()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	last := p.end("a", old.ContainerID)
	if last != nil && last.ExitCode != 128+int32(syscall.SIGKILL) {
		t.Errorf("the old container's end is %+v, want SIGKILL", last)
	}
	if began := after.State.Running.StartedAt; last != nil && began.Before(&last.FinishedAt) {
		t.Errorf("the new container began at %s, before the old one's end at %s", began, last.FinishedAt)
	}
}

// The first signal is the image's STOPSIGNAL, if it has one.
//
// Source: containerd internal/cri/server, container_stop.go:stopContainer.
//
// Relies: the wrapper takes any such signal as SIGTERM, `wrapper/agent/stop.go`.
func TestStopSignalIsTheImages(t *testing.T) {
	t.Parallel()
	c := container("a", strings.ReplaceAll(stubborn, "TERM", "USR2"))
	c.Image = pool.Image("hostile")
	c.WorkingDir = "/"
	root := int64(0)
	c.SecurityContext = &corev1.SecurityContext{RunAsUser: &root}
	c.Env = append(c.Env, corev1.EnvVar{Name: "PATH", Value: "/bin"})
	p := newPod(t, nil, c)
	p.running("a")
	p.logs("a begins ")
	p.bind("a", pool.Image("busybox"), "two")
	p.logs("a gets USR2")
	p.release("a")
	p.logs("a begins two")
}

// When a container's first process ends, the runtime ends all others of the container
// before the next one is made, in a pod that shares its process namespace as well.
//
// Source: containerd cmd/containerd-shim-runc-v2, ShouldKillAllOnExit; runc libcontainer, signalAllProcesses.
//
// Relies: a payload does not outlive its container, `k8sexec/vacate.go`.
func TestContainersProcessesEndWithIt(t *testing.T) {
	t.Parallel()
	share := true
	p := newPod(t, func(o *corev1.Pod) {
		o.Spec.ShareProcessNamespace = &share
		o.Annotations = map[string]string{"rule": "one"}
	}, container("a", `
if [ "$RULE" = one ]; then
	mkfifo /rule/alive
	setsid sh -c 'trap "" TERM HUP; exec 9<>/rule/alive; echo "child begins" >>/rule/log; while :; do sleep 3600; done' &
	wait
fi`+waiter))
	p.logs("child begins")
	alive, err := syscall.Open(filepath.Join(p.dir, "alive"), syscall.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(alive)
	if _, err := syscall.Read(alive, make([]byte, 1)); err != syscall.EAGAIN {
		t.Fatalf("reading from the child's pipe: %v, want that it is open", err)
	}
	old := p.running("a")
	p.bind("a", once(old.ImageID, "rule"), "two")
	p.runs("a", old.ContainerID)
	if n, err := syscall.Read(alive, make([]byte, 1)); n != 0 || err != nil {
		t.Errorf("the old container's child still has its pipe open (%v)\n%s", err, p.history(0))
	}
}

// A pod whose activeDeadlineSeconds are patched to the least value fails with the reason
// DeadlineExceeded, and nothing is started in it again, whatever its restartPolicy.
//
// Source: active_deadline.go:pastActiveDeadline; pkg/apis/core/validation/validation.go:ValidatePodUpdate.
//
// Relies: a pilot that is done ends its pod, `k8sexec/endpod.go`.
func TestDeadlineEndsThePod(t *testing.T) {
	t.Parallel()
	p := newPod(t, nil, container("a", waiter))
	status := p.running("a")
	p.logs("a begins ")
	p.patch(map[string]any{"spec": map[string]any{"activeDeadlineSeconds": 1}})
	state := p.until("the pod's end", func(s *corev1.Pod) bool { return s.Status.Phase == corev1.PodFailed })
	if state.Status.Reason != "DeadlineExceeded" {
		t.Errorf("reason %q", state.Status.Reason)
	}
	p.bind("a", once(status.ImageID, "rule"), "two")
	// The kubelet acts on later changes of another pod.
	other := newPod(t, nil, container("c", waiter))
	c := other.running("c")
	other.bind("c", once(c.ImageID, "rule"), "x")
	other.runs("c", c.ContainerID)
	if diff := cmp.Diff([]string{"a begins ", "a gets TERM"}, p.log()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A pod that is deleted says so, with the time of its end, while its containers still run
// on SIGTERM.
//
// Source: pkg/registry/core/pod/strategy.go:CheckGracefulDelete; kubelet.go:SyncTerminatingPod.
//
// Relies: why a job's container is told to stop, and how much time is left, `k8sexec/notice.go`.
func TestDeletionIsShownWhileContainersRun(t *testing.T) {
	t.Parallel()
	p := newPod(t, nil, container("a", stubborn))
	p.running("a")
	p.logs("a begins ")
	body, err := api.open(p.ctx, http.MethodDelete, p.name, "gracePeriodSeconds=600", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	body.Close()
	p.logs("a gets TERM")
	state := p.until("the deletion", func(s *corev1.Pod) bool { return s.DeletionTimestamp != nil })
	if grace := state.DeletionGracePeriodSeconds; grace == nil || *grace != 600 || statusOf(state, "a").State.Running == nil {
		t.Errorf("the grace period is not the one asked for, or the container does not run: %+v\n%s", state.ObjectMeta, p.history(0))
	}
	p.release("a")
}

// Of a container's last words (/dev/termination-log) the status has at least 4096 bytes,
// unchanged.
//
// Source: container/runtime.go:MaxContainerTerminationMessageLength; kuberuntime/kuberuntime_container.go:getTerminationMessage.
//
// Relies: why a wrapper could not start, `wrapper/agent/lastwords.go`.
func TestLastWords(t *testing.T) {
	t.Parallel()
	p := newPod(t, func(o *corev1.Pod) { o.Spec.RestartPolicy = corev1.RestartPolicyNever },
		container("a", `{ printf begin; head -c 4086 /dev/zero | tr '\0' x; printf "end!\n"; } >/dev/termination-log; exit 3`))
	state := p.until("the end", func(s *corev1.Pod) bool { return statusOf(s, "a").State.Terminated != nil })
	if diff := cmp.Diff("begin"+strings.Repeat("x", 4086)+"end!\n", statusOf(state, "a").State.Terminated.Message); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
