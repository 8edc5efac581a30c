package k8sexec

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/podwatch"
)

// ahead is another payload container that the kubelet may be at, while this one waits: a
// kubelet works on a pod serially, so a pull keeps all other containers waiting.
type ahead struct {
	container, spec string
	// underWay says that a starter waits for that container. Otherwise it gave up, and the
	// kubelet did not.
	underWay bool
}

func (a ahead) String() string {
	if a.container == "" {
		return ""
	}
	return fmt.Sprintf("the kubelet has not got to this container; it is busy with container %s, which is to run %s", a.container, a.spec)
}

// ahead finds out whether the kubelet is at another container of the pod; the zero value if
// not, or if nothing shows it.
func (l *lease) ahead(t *podwatch.Tracker, pod *corev1.Pod) ahead {
	untouched := t.IsUntouched(pod)
	var found ahead
	for _, c := range podapi.Containers(pod) {
		if c.Name == l.name {
			if !untouched {
				break // the kubelet starts containers in the order of the specification
			}
			continue
		}
		if !slices.Contains(l.backend.opt.Containers, c.Name) {
			continue
		}
		other, err := readSlot(l.private, c.Name)
		if err != nil || other.Spec == "" || !other.Bound.IsZero() {
			continue // it is bound, or was never
		}
		// A kubelet that has failed may be at its next try: the status does not show that.
		if w := podapi.StatusOf(pod, c.Name).State.Waiting; !untouched && w != nil && w.Reason != "" && w.Reason != podwatch.ReasonCreating {
			continue
		}
		if found.container == "" || other.InUse && !found.underWay {
			found = ahead{c.Name, other.Spec, other.InUse}
		}
	}
	return found
}
