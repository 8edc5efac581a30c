package verdict

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ruleEvicted: the kubelet or the cluster ends the pod for lack of a resource or of
// time (kubelet eviction manager, node shutdown, active deadline, preemption). The job
// is not to blame: the pod's other containers count too.
func ruleEvicted(f Failure) (Judgement, bool) {
	if f.Origin != FromPod {
		return Judgement{}, false
	}
	switch f.Reason {
	case "Evicted":
		return Judgement{Class: ToPilot, Says: "The pod was evicted from its node."}, true
	case "DeadlineExceeded":
		return Judgement{Class: ToPilot, Says: "The pod has reached the end of its time."}, true
	case "NodeShutdown", "Shutdown", "Terminated", "NodeLost", "Preempting", "UnexpectedAdmissionError", "NodeAffinity", "OutOfcpu", "OutOfmemory":
		return Judgement{Class: ToPilot, Says: "The node takes the pod down."}, true
	}
	return Judgement{}, false
}

// rulePodEnds: the pod is being deleted, has ended, or has been replaced. A pull that hangs
// keeps it, with a pilot that would take one job after another, until the pull has ended.
func rulePodEnds(f Failure) (Judgement, bool) {
	if f.Origin != FromPod {
		return Judgement{}, false
	}
	return Judgement{Class: ToPilot, Says: "The pod comes to its end; the job may run in another one."}, true
}

// OfPod gives a failure if the pod as a whole is at its end, else nil.
func OfPod(pod *corev1.Pod, uid types.UID) *Failure {
	f := &Failure{Origin: FromPod, Reason: pod.Status.Reason, Message: pod.Status.Message}
	switch {
	case uid != "" && pod.UID != uid:
		f.Reason, f.Message = ReasonPodReplaced, "another pod has taken the name "+pod.Name
	case pod.Status.Phase == corev1.PodFailed, pod.Status.Phase == corev1.PodSucceeded:
		if f.Reason == "" {
			f.Reason = ReasonPodEnded
		}
		if f.Message == "" {
			f.Message = fmt.Sprintf("the pod's phase is %s", pod.Status.Phase)
		}
	case pod.DeletionTimestamp != nil:
		if f.Reason == "" {
			f.Reason = ReasonPodDeleted
		}
		if why := Disruption(pod); why != "" {
			f.Message = why
		}
		if f.Message == "" {
			f.Message = "the pod is being deleted"
		}
	default:
		return nil
	}
	return f
}

// Disruption is why a pod is taken down, if Kubernetes says so (condition
// DisruptionTarget); empty if not.
func Disruption(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return c.Reason + ": " + c.Message
		}
	}
	return ""
}
