package podapi

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Limits are those of a container that can be changed while its pod runs. 0 is no limit.
type Limits struct {
	MilliCPU int64 `json:"milli_cpu,omitempty"`
	Memory   int64 `json:"memory,omitempty"` // bytes
}

// LimitsOf reads them, or requests.
func LimitsOf(list corev1.ResourceList) Limits {
	return Limits{MilliCPU: list.Cpu().MilliValue(), Memory: list.Memory().Value()}
}

// ResizePatch is a strategic merge patch of the subresource resize. It changes limits that the
// container has, and no requests: what the scheduler keeps for the pod stays as it is.
func ResizePatch(container string, sidecar bool, l Limits) ([]byte, error) {
	limits := map[corev1.ResourceName]string{}
	if l.MilliCPU > 0 {
		limits[corev1.ResourceCPU] = resource.NewMilliQuantity(l.MilliCPU, resource.DecimalSI).String()
	}
	if l.Memory > 0 {
		limits[corev1.ResourceMemory] = resource.NewQuantity(l.Memory, resource.BinarySI).String()
	}
	list := "containers"
	if sidecar {
		list = "initContainers"
	}
	data, err := json.Marshal(map[string]any{"spec": map[string]any{list: []any{
		map[string]any{"name": container, "resources": map[string]any{"limits": limits}}}}})
	if err != nil {
		return nil, fmt.Errorf("encode a change of the limits of container %s: %w", container, err)
	}
	return data, nil
}
