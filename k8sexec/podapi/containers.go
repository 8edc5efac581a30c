package podapi

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// isSidecar says whether an init container goes on beside the pod's others (KEP-753).
func isSidecar(init *corev1.Container) bool {
	return init.RestartPolicy != nil && *init.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// IsSidecar says whether the pod has such an init container of this name. A container of
// its other list may have the same restartPolicy (KEP-5307), and is none.
func IsSidecar(pod *corev1.Pod, container string) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == container && isSidecar(&c) })
}

// Containers are those of a pod that live as long as it does, sidecars too, in the order
// in which the kubelet starts them
// (kuberuntime_container.go:computeInitContainerActions, kuberuntime_manager.go:SyncPod).
func Containers(pod *corev1.Pod) []*corev1.Container {
	var found []*corev1.Container
	for i := range pod.Spec.InitContainers {
		if c := &pod.Spec.InitContainers[i]; isSidecar(c) {
			found = append(found, c)
		}
	}
	for i := range pod.Spec.Containers {
		found = append(found, &pod.Spec.Containers[i])
	}
	return found
}

// SpecOf finds one of these in the pod's spec.
func SpecOf(pod *corev1.Pod, container string) *corev1.Container {
	for _, c := range Containers(pod) {
		if c.Name == container {
			return c
		}
	}
	return nil
}

// Statuses are those of all containers, of init containers too. A name occurs once in a
// pod.
func Statuses(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
}

// StatusOf finds a container in the pod's status; the zero value if the kubelet
// has not reported it.
func StatusOf(pod *corev1.Pod, container string) corev1.ContainerStatus {
	for _, s := range Statuses(pod) {
		if s.Name == container {
			return s
		}
	}
	return corev1.ContainerStatus{Name: container}
}

// MemoryLimit is how much memory a container may use, in bytes: what the kubelet says it has
// set, else what the pod asks for; the pod's own limit if that is lower. 0 if there is none.
func MemoryLimit(pod *corev1.Pod, container string) int64 {
	limit := int64(0)
	if c := SpecOf(pod, container); c != nil {
		limit = c.Resources.Limits.Memory().Value()
	}
	if r := StatusOf(pod, container).Resources; r != nil && r.Limits.Memory().Value() > 0 {
		limit = r.Limits.Memory().Value() // it may have been resized
	}
	if pod.Spec.Resources != nil {
		if whole := pod.Spec.Resources.Limits.Memory().Value(); whole > 0 && (limit == 0 || whole < limit) {
			limit = whole
		}
	}
	return limit
}

// BareID is a container ID of a status without its runtime: containerd://ID.
func BareID(containerID string) string {
	_, id, found := strings.Cut(containerID, "://")
	if !found {
		return containerID
	}
	return id
}
