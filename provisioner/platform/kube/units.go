package kube

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"podstarter/provisioner/backoff"
	"podstarter/provisioner/platform"
)

// noPod is what is known of a Job without a pod.
const noPod = "its Job has no pod: the API server may refuse it (a quota, a LimitRange, an admission policy); kubectl describe job says why"

// maxDetail bounds what is kept of the cluster's words.
const maxDetail = 500

// podless is how long the Job controller may take to make a Job's pod.
const podless = 30 * time.Second

// unscheduled is how long the scheduler may take to look at a pod: it does a hundred in
// a second, or fewer if it is busy.
const unscheduled = 5 * time.Minute

// noScheduler is what is known of a pod at which no scheduler has looked.
const noScheduler = "no scheduler has given it a node or said why not: is there one with the schedulerName of the manifest?"

// units joins Jobs and pods to units.
func units(jobs []*batchv1.Job, pods []*corev1.Pod, now time.Time) []platform.Unit {
	byName := map[string]*platform.Unit{}
	open := map[string]bool{} // Jobs that may make another pod
	gone := map[string]bool{} // Jobs that are being deleted
	for _, j := range jobs {
		u := platform.Unit{Spec: spec(j.ObjectMeta, j.Name), Created: j.CreationTimestamp.Time, Leaving: j.DeletionTimestamp != nil}
		gone[u.Name] = u.Leaving
		finish(&u, j)
		if s := j.Status; u.Phase == platform.Pending && s.Active == 0 && s.Failed == 0 && now.Sub(u.Created) > podless {
			// Unless a pod of it is seen below. Only events say why there is none.
			u.Trouble, u.Detail = backoff.Denied, noPod
		}
		open[u.Name] = u.Phase != platform.Ended
		byName[u.Name] = &u
	}
	// A Job that lost its pod makes another one: the last one counts.
	pods = slices.Clone(pods)
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	for _, p := range pods {
		s := spec(p.ObjectMeta, owner(p))
		u := byName[s.Name]
		bare := u == nil
		if bare {
			// A bare pod, or one whose Job is being deleted.
			u = &platform.Unit{Spec: s, Created: p.CreationTimestamp.Time}
			byName[s.Name] = u
		}
		u.Hosts, u.Use = []string{p.Name}, use(p)
		// A Job whose pod is deleted makes another one.
		u.Leaving = p.DeletionTimestamp != nil || gone[s.Name]
		if !bare && !open[s.Name] {
			continue
		}
		follow(u, p)
		if u.Phase == platform.Pending && u.Trouble == "" && u.Placed.IsZero() && now.Sub(p.CreationTimestamp.Time) > unscheduled {
			u.Trouble, u.Detail = backoff.Unschedulable, noScheduler
		}
		if p.Status.Phase == corev1.PodFailed && open[s.Name] {
			// The Job makes another pod, or says in a moment that it makes none.
			u.Phase, u.Ended = platform.Pending, time.Time{}
		}
	}
	all := make([]platform.Unit, 0, len(byName))
	for _, u := range byName {
		all = append(all, *u)
	}
	slices.SortFunc(all, func(a, b platform.Unit) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// owner returns the name of a pod's unit: that of its Job, or its own. Labels do
// not decide it, since whoever may label a pod could give it the name of another
// object, and a pod without the label would not be counted.
func owner(p *corev1.Pod) string {
	if o := metav1.GetControllerOf(p); o != nil && o.Kind == "Job" {
		return o.Name
	}
	return p.Name
}

// finish notes the end of a Job.
func finish(u *platform.Unit, j *batchv1.Job) {
	for _, c := range j.Status.Conditions {
		if c.Status != corev1.ConditionTrue || c.Type != batchv1.JobComplete && c.Type != batchv1.JobFailed {
			continue
		}
		u.Phase, u.Ended = platform.Ended, c.LastTransitionTime.Time
		if j.Status.StartTime != nil {
			u.Began = j.Status.StartTime.Time
		}
		// A glidein that reaches its lifetime ends this way.
		if c.Type == batchv1.JobFailed && c.Reason != batchv1.JobReasonDeadlineExceeded {
			u.Trouble, u.Detail = backoff.Failed, shortest(fmt.Sprintf("%s: %s", c.Reason, c.Message), maxDetail)
		}
	}
}

// follow notes how far a pod has come.
func follow(u *platform.Unit, p *corev1.Pod) {
	u.Placed, u.Began, u.Trouble, u.Detail = time.Time{}, time.Time{}, "", ""
	if begun(p) {
		u.Began = start(p)
	}
	switch p.Status.Phase {
	case corev1.PodRunning:
		u.Phase = platform.Running
	case corev1.PodSucceeded, corev1.PodFailed:
		u.Phase, u.Ended = platform.Ended, ended(p)
		if p.Status.Phase == corev1.PodFailed {
			u.Trouble, u.Detail = backoff.Failed, failure(p)
		}
	default:
		u.Phase = platform.Pending
		if begun(p) {
			u.Phase = platform.Running
			return
		}
		u.Placed = placed(p)
		u.Trouble, u.Detail = obstacle(p)
	}
}

// What podstarter's pilot writes into its pod when it gives a payload container to a
// job, and the container's variable that follows it.
const (
	noncePrefix = "podstarter/nonce-"
	nonceEnv    = "POD_STARTER_NONCE"
)

// use returns what a pod tells of jobs. Each job that runs in a payload container was
// bound to it before, which is written into an annotation that stays. A container
// without the variable for that, of a pilot of another kind, tells nothing.
func use(p *corev1.Pod) platform.Use {
	all := payloads(&p.Spec)
	tells := len(all) > 0
	for _, c := range all {
		if p.Annotations[noncePrefix+c.Name] != "" {
			return platform.Used
		}
		tells = tells && slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return isNonce(c.Name, e) })
	}
	if tells {
		return platform.Unused
	}
	return platform.UseUnknown
}

// isNonce reports whether a variable of a container has the nonce of its last job.
func isNonce(container string, e corev1.EnvVar) bool {
	return e.Name == nonceEnv && e.ValueFrom != nil && e.ValueFrom.FieldRef != nil &&
		e.ValueFrom.FieldRef.FieldPath == "metadata.annotations['"+noncePrefix+container+"']"
}

// begun reports whether the pilot of a pod has begun. The phase alone does not say
// it: a pod whose payload container waits for the image of a job can be Pending again
// (Kubernetes pkg/kubelet/kubelet_pods.go:getPhase).
func begun(p *corev1.Pod) bool {
	if p.Status.Phase != corev1.PodPending && p.Status.Phase != "" {
		return true
	}
	for _, c := range p.Status.ContainerStatuses {
		if payloadName(c.Name) {
			continue // a container of the pod's own may be before the pilot
		}
		if c.RestartCount > 0 || c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil {
			return true
		}
	}
	return false
}

// placed returns when a pod that waits got a node, or zero if it has none.
func placed(p *corev1.Pod) time.Time {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	if p.Spec.NodeName != "" {
		return p.CreationTimestamp.Time
	}
	return time.Time{}
}

// start returns when a pod that has begun did so. Its start time is that at which
// the node took it, and pulling the images comes after that.
func start(p *corev1.Pod) time.Time {
	at := time.Time{}
	if p.Status.StartTime != nil {
		at = p.Status.StartTime.Time
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodInitialized && c.Status == corev1.ConditionTrue && c.LastTransitionTime.After(at) {
			at = c.LastTransitionTime.Time
		}
	}
	return at
}

// ended returns when the last container of a pod ended.
func ended(p *corev1.Pod) time.Time {
	at := p.CreationTimestamp.Time
	for _, c := range statuses(p) {
		if t := c.State.Terminated; t != nil && t.FinishedAt.After(at) {
			at = t.FinishedAt.Time
		}
	}
	return at
}

// failure returns why a pod failed, in the words of the cluster.
func failure(p *corev1.Pod) string {
	text := p.Status.Reason + " " + p.Status.Message
	for _, c := range statuses(p) {
		if t := c.State.Terminated; t != nil && t.ExitCode != 0 {
			text += fmt.Sprintf(" container %s: exit code %d %s %s", c.Name, t.ExitCode, t.Reason, t.Message)
		}
	}
	return shortest(text, maxDetail)
}

func statuses(p *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
}

// pulls are the reasons of a container that waits for its image
// (Kubernetes pkg/kubelet/images/types.go).
var pulls = []string{"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError", "RegistryUnavailable", "SignatureValidationFailed"}

// obstacle returns why a pod does not begin, if it is known.
func obstacle(p *corev1.Pod) (backoff.Reason, string) {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && (c.Reason == corev1.PodReasonUnschedulable || c.Reason == corev1.PodReasonSchedulingGated) {
			return backoff.Unschedulable, shortest(c.Message, maxDetail)
		}
	}
	for _, c := range statuses(p) {
		w := c.State.Waiting
		switch {
		case w == nil:
		case slices.Contains(pulls, w.Reason):
			return backoff.ImageFailed, shortest(fmt.Sprintf("container %s: %s: %s", c.Name, w.Reason, w.Message), maxDetail)
		case w.Reason == "CreateContainerConfigError", w.Reason == "CreateContainerError", w.Reason == "CrashLoopBackOff" && !payloadName(c.Name):
			return backoff.Failed, shortest(fmt.Sprintf("container %s: %s: %s", c.Name, w.Reason, w.Message), maxDetail)
		}
	}
	return "", ""
}
