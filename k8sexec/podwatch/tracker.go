package podwatch

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podstarter/k8sexec/imageref"
	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/verdict"
)

// Tracker reads the pod's status during one binding, and separates news of the
// container that the binding asked for from remains of earlier ones. That is not
// obvious: the status lags by a second or more, and the kubelet keeps the reason why a
// container could not be started until its next attempt, so that the status for the new
// spec may still speak of the old image (kubelet_pods.go:convertToAPIContainerStatuses,
// reasonCache).
//
// A failure counts as this binding's if
//   - the kubelet had seen the patched spec (status.observedGeneration), and
//   - it names this image, or neither names the previous image nor is word for word the
//     one that the status showed before.
//
// The last applies only if the spec did change.
type Tracker struct {
	container string
	uid       types.UID
	spec      string   // image string as patched
	before    []string // image strings before, as far as known
	changed   bool     // whether spec differs from before

	atPatch    []corev1.ContainerState // of all, when the pod was patched
	generation int64                   // of the patched pod, 0 where it is not counted
	old        map[string]struct{}     // containers that existed before the patch
	stale      map[complaint]bool      // failures that were there before the kubelet saw the patch
	dead       map[string]struct{}     // containers of this binding that ended
	running    string                  // container of this binding that runs
	since      time.Time               // when it was first seen running
	last       complaint               // of this binding, the one seen last
	tries      int                     // failures of the kubelet with this image that were seen
	first      time.Time               // when the first of them was seen
	taken      bool                    // the kubelet has seen the patched spec, or may have
	wasRunning bool                    // the latest state shows the old container running
	now        func() time.Time

	// troubled says that the container of the binding before did not start: an
	// attempt to start it may be under way still; see isDoubtful.
	troubled   bool
	doubt      time.Duration
	doubted    complaint
	doubtSince time.Time // when doubted was first seen
}

// complaint is why the kubelet says that a container does not run.
type complaint struct{ reason, message string }

// maxStale bounds the remembered complaints; each failing image has two, the failure
// and its back-off.
const maxStale = 16

// Change is what a patch changed for one container, and what was known before it.
type Change struct {
	Container string
	// Spec is the image string as patched, Before the one before; empty if it is not known.
	Spec, Before string
	// Withdrawn is the image string before that one, if it was taken back because it failed:
	// what the kubelet says of it may come yet.
	Withdrawn string
	// Same says that the patch left the image string as it was.
	Same bool
	// Last is the container of the binding before, empty if that came to none or it is not known.
	Last string
	// Failed says that the binding before did not come to a container.
	Failed bool
	// Doubt is how long a failure to run, which may belong to the previous image, must
	// persist until it counts as this image's: the kubelet tries again after 10 s.
	Doubt time.Duration
}

// Track begins with the pod as the patch returned it.
func Track(c Change, pod *corev1.Pod) *Tracker {
	status := podapi.StatusOf(pod, c.Container)
	t := &Tracker{
		container: c.Container, uid: pod.UID, spec: c.Spec, before: []string{c.Before, c.Withdrawn}, changed: !c.Same, doubt: c.Doubt, atPatch: statesOf(pod),
		generation: pod.Generation, old: make(map[string]struct{}),
		stale: make(map[complaint]bool), dead: make(map[string]struct{}), now: time.Now,
	}
	// The status may not show the last binding's container yet.
	t.old[c.Last] = struct{}{}
	t.old[podapi.BareID(status.ContainerID)] = struct{}{}
	if ended := status.LastTerminationState.Terminated; ended != nil {
		t.old[podapi.BareID(ended.ContainerID)] = struct{}{}
	}
	t.remember(status)
	t.troubled = t.changed && c.Failed && status.State.Running == nil
	return t
}

// isDoubtful says whether a failure to run a container may belong to the previous
// image. Such messages do not name the image but mostly the container, so no two are
// the same; and an attempt that was under way at the patch may end after it. There is
// at most one such failure: a second one, or one that persists until the kubelet's next
// attempt, is about this image.
func (t *Tracker) isDoubtful(c complaint) bool {
	if !t.troubled || !strings.HasSuffix(c.reason, "Error") || c.reason == verdict.ReasonErrPull || imageref.Named(c.message, t.spec) {
		return false
	}
	if t.doubted == (complaint{}) {
		t.doubted, t.doubtSince = c, t.now()
	}
	if t.doubted == c && t.now().Sub(t.doubtSince) < t.doubt {
		return true
	}
	t.troubled = false
	return false
}

func (t *Tracker) isOld(id string) bool {
	_, ok := t.old[id]
	return ok || id == ""
}

func (t *Tracker) remember(status corev1.ContainerStatus) {
	if w := status.State.Waiting; w != nil && len(t.stale) < maxStale {
		t.stale[complaint{w.Reason, w.Message}] = true
	}
}

// Look takes the next state of the pod and gives the failure that it shows, or nil. It
// gives a failure that persists again each time.
func (t *Tracker) Look(pod *corev1.Pod) *verdict.Failure {
	if f := verdict.OfPod(pod, t.uid); f != nil {
		return f
	}
	status := podapi.StatusOf(pod, t.container)
	if t.isUnseen(pod) {
		t.remember(status)
		return nil
	}
	t.taken, t.wasRunning = true, status.State.Running != nil
	switch id := podapi.BareID(status.ContainerID); {
	case status.State.Waiting != nil:
		t.running = "" // what ran may have been of a patch before
		return t.waiting(status)
	case t.isOld(id):
		// Not reported yet, or being killed.
	case status.State.Running != nil:
		if t.running != id {
			t.running, t.since = id, t.now()
		}
	case status.State.Terminated != nil:
		t.bury(status.State.Terminated)
	}
	return nil
}

// ReasonCreating is why a container waits that the kubelet makes, or pulls the image of.
const ReasonCreating = "ContainerCreating"

// IsUntouched says whether nothing shows that the kubelet has seen the patch.
func (t *Tracker) IsUntouched(pod *corev1.Pod) bool {
	if t.generation > 0 && pod.Status.ObservedGeneration > 0 {
		return t.isUnseen(pod)
	}
	return reflect.DeepEqual(statesOf(pod), t.atPatch)
}

func statesOf(pod *corev1.Pod) []corev1.ContainerState {
	var states []corev1.ContainerState
	for _, s := range podapi.Statuses(pod) {
		states = append(states, s.State)
	}
	return states
}

// isUnseen says whether the kubelet made the status from a spec before the patch, as
// far as the cluster shows that (status.observedGeneration, Kubernetes 1.34).
func (t *Tracker) isUnseen(pod *corev1.Pod) bool {
	return t.generation > 0 && pod.Status.ObservedGeneration > 0 && pod.Status.ObservedGeneration < t.generation
}

// IsActedOn says whether the kubelet has begun to make the container anew: before it
// stops the container, it publishes which spec it goes by (status.observedGeneration,
// Kubernetes 1.34).
func (t *Tracker) IsActedOn(pod *corev1.Pod) bool {
	return t.generation > 0 && pod.Status.ObservedGeneration >= t.generation
}

// waiting judges a container that the kubelet could not start, or not yet.
func (t *Tracker) waiting(status corev1.ContainerStatus) *verdict.Failure {
	w := status.State.Waiting
	now := complaint{w.Reason, w.Message}
	if ended := status.LastTerminationState.Terminated; ended != nil {
		t.bury(ended)
	}
	switch w.Reason {
	case "", ReasonCreating, "PodInitializing":
		return nil
	case verdict.ReasonCrashLoop:
		return t.crashLoop(status)
	}
	if t.isOfBefore(now) || t.isDoubtful(now) {
		return nil
	}
	if now != t.last {
		// Attempts and back-offs take turns.
		if w.Reason != verdict.ReasonPullBackOff || t.tries == 0 {
			t.tries++
		}
		t.last = now
	}
	if t.first.IsZero() {
		t.first = t.now()
	}
	return &verdict.Failure{Origin: verdict.FromContainer, Reason: w.Reason, Message: w.Message, Tries: t.tries, Since: t.first}
}

// crashLoop is a failure only if containers of this binding have ended: the
// kubelet also backs off when an image comes back under its plain name, whatever
// made the container end before.
func (t *Tracker) crashLoop(status corev1.ContainerStatus) *verdict.Failure {
	if len(t.dead) == 0 {
		return nil
	}
	f := &verdict.Failure{Origin: verdict.FromContainer, Reason: verdict.ReasonCrashLoop, Message: status.State.Waiting.Message, Tries: len(t.dead), Since: t.now()}
	if ended := status.LastTerminationState.Terminated; ended != nil {
		f.Exit = ended
	}
	return f
}

// bury notes a container that ended, unless it existed before the patch.
func (t *Tracker) bury(ended *corev1.ContainerStateTerminated) {
	if id := podapi.BareID(ended.ContainerID); !t.isOld(id) {
		t.dead[id] = struct{}{}
		if t.running == id {
			t.running = ""
		}
	}
}

// Running is the container of this binding that runs, and for how long it has been seen
// running; empty if none runs.
func (t *Tracker) Running() (id string, seen time.Duration) {
	if t.running == "" {
		return "", 0
	}
	return t.running, t.now().Sub(t.since)
}

// UID is that of the pod that was patched.
func (t *Tracker) UID() types.UID { return t.uid }

// MayBeOverdue says whether the kubelet may know more than it has published. It
// publishes why a container could not be started only at its next look at the pod:
// almost at once if it notices that a container of the pod has just ended, otherwise 10
// s later (pod_workers.go, back-off after an error). The latter happens if the
// container was not running before, mostly because the previous image could not be
// pulled either.
func (t *Tracker) MayBeOverdue() bool {
	return t.taken && t.running == "" && t.tries == 0 && !t.wasRunning
}

// isOfBefore says whether a complaint is about the previous image.
func (t *Tracker) isOfBefore(c complaint) bool {
	isBefore := func(spec string) bool { return spec != "" && imageref.Named(c.message, spec) }
	return t.changed && !imageref.Named(c.message, t.spec) && (t.stale[c] || slices.ContainsFunc(t.before, isBefore))
}

// pulling describes a state that the status does not show.
const pulling = "the kubelet has taken up the change and is probably pulling the image, or waits until other pulls are done"

// Describe says in a few words how far the kubelet has come. The status does not show
// what the kubelet does between the end of the old container and the start of the new
// one, mostly a pull.
func (t *Tracker) Describe(pod *corev1.Pod) string {
	if t.isUnseen(pod) {
		return "the kubelet has not taken up the change yet; it may still be pulling an earlier image"
	}
	s := podapi.StatusOf(pod, t.container)
	switch {
	case s.State.Waiting != nil && t.isOfBefore(complaint{s.State.Waiting.Reason, s.State.Waiting.Message}):
		return pulling
	case s.State.Waiting != nil && s.State.Waiting.Message != "":
		return fmt.Sprintf("waiting, %s: %s", s.State.Waiting.Reason, s.State.Waiting.Message)
	case s.State.Waiting != nil && s.State.Waiting.Reason != "":
		return "waiting, " + s.State.Waiting.Reason
	case t.isOld(podapi.BareID(s.ContainerID)):
		return pulling
	case s.State.Running != nil:
		return "running"
	case s.State.Terminated != nil:
		return "ended with " + verdict.DescribeExit(s.State.Terminated)
	default:
		return "waiting"
	}
}
