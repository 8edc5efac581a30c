package corev1

import "k8s.io/apimachinery/pkg/api/resource"

// ResourceRequirements is what a container may use, and what the scheduler keeps for it.
type ResourceRequirements struct {
	Limits   ResourceList    `json:"limits,omitempty"`
	Requests ResourceList    `json:"requests,omitempty"`
	Claims   []ResourceClaim `json:"claims,omitempty"`
}

// ResourceClaim names a claim of the pod for a device.
type ResourceClaim struct {
	Name    string `json:"name"`
	Request string `json:"request,omitempty"`
}

// ResourceList is a quantity for each resource.
type ResourceList map[ResourceName]resource.Quantity

// ResourceName is the name of a resource.
type ResourceName string

// Resources that are no devices. Those of huge pages have their size behind the prefix.
const (
	ResourceCPU              ResourceName = "cpu"
	ResourceMemory           ResourceName = "memory"
	ResourceEphemeralStorage ResourceName = "ephemeral-storage"
	ResourceHugePagesPrefix               = "hugepages-"
)

// Cpu is the quantity of CPUs, 0 if there is none.
//
//nolint:revive,staticcheck // the name that core/v1 gives it
func (l ResourceList) Cpu() *resource.Quantity { return l.of(ResourceCPU, resource.DecimalSI) }

// Memory is the quantity of memory in bytes, 0 if there is none.
func (l ResourceList) Memory() *resource.Quantity { return l.of(ResourceMemory, resource.BinarySI) }

// StorageEphemeral is that of the container's own files, 0 if there is none.
func (l ResourceList) StorageEphemeral() *resource.Quantity {
	return l.of(ResourceEphemeralStorage, resource.BinarySI)
}

func (l ResourceList) of(name ResourceName, form resource.Format) *resource.Quantity {
	if q, ok := l[name]; ok {
		return &q
	}
	return &resource.Quantity{Format: form}
}
