package podapi

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestMemoryLimit: what the kubelet has set counts more than what was asked for, and the pod's
// own limit if it is lower.
func TestMemoryLimit(t *testing.T) {
	limit := func(q string) corev1.ResourceRequirements {
		if q == "" {
			return corev1.ResourceRequirements{}
		}
		return corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(q)}}
	}
	for _, tt := range []struct {
		name, spec, status, pod string
		want                    int64
	}{
		{name: "none"},
		{name: "asked for", spec: "256Mi", want: 256 << 20},
		{name: "resized", spec: "256Mi", status: "512Mi", want: 512 << 20},
		{name: "of the pod", pod: "1Gi", want: 1 << 30},
		{name: "the pod's is lower", spec: "2Gi", pod: "1Gi", want: 1 << 30},
		{name: "the pod's is higher", spec: "512Mi", pod: "1Gi", want: 512 << 20},
		{name: "the status without one", spec: "256Mi", status: "0", want: 256 << 20},
	} {
		pod := &corev1.Pod{}
		pod.Spec.Containers = []corev1.Container{{Name: "pilot", Resources: limit("7Mi")}, {Name: "payload", Resources: limit(tt.spec)}}
		if tt.pod != "" {
			r := limit(tt.pod)
			pod.Spec.Resources = &r
		}
		if tt.status != "" {
			r := limit(tt.status)
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "payload", Resources: &r}}
		}
		if got := MemoryLimit(pod, "payload"); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}
