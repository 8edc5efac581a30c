package corev1

import "k8s.io/apimachinery/pkg/api/resource"

// Volume is one of a pod's volumes.
type Volume struct {
	Name string `json:"name"`
	VolumeSource
}

// VolumeSource is the kind of a volume. None is set if the kind is one that starters need
// not tell from others.
type VolumeSource struct {
	HostPath    *HostPathVolumeSource  `json:"hostPath,omitempty"`
	EmptyDir    *EmptyDirVolumeSource  `json:"emptyDir,omitempty"`
	Secret      *SecretVolumeSource    `json:"secret,omitempty"`
	DownwardAPI *struct{}              `json:"downwardAPI,omitempty"`
	ConfigMap   *struct{}              `json:"configMap,omitempty"`
	Projected   *ProjectedVolumeSource `json:"projected,omitempty"`
}

// SecretVolumeSource has the files of a secret.
type SecretVolumeSource struct {
	SecretName string `json:"secretName,omitempty"`
}

// HostPathVolumeSource is a directory of the node.
type HostPathVolumeSource struct {
	Path string `json:"path"`
}

// EmptyDirVolumeSource is a directory that lives as long as the pod.
type EmptyDirVolumeSource struct {
	Medium    StorageMedium      `json:"medium,omitempty"`
	SizeLimit *resource.Quantity `json:"sizeLimit,omitempty"`
}

// StorageMedium is where such a directory is: empty for the node's disk.
type StorageMedium string

// StorageMediumMemory is the medium of a directory that is in memory.
const StorageMediumMemory StorageMedium = "Memory"

// ProjectedVolumeSource is a volume of files from several sources.
type ProjectedVolumeSource struct {
	Sources []VolumeProjection `json:"sources"`
}

// VolumeProjection is one of these sources.
type VolumeProjection struct {
	Secret              *struct{}                      `json:"secret,omitempty"`
	ServiceAccountToken *ServiceAccountTokenProjection `json:"serviceAccountToken,omitempty"`
}

// ServiceAccountTokenProjection is a token of the pod's service account.
type ServiceAccountTokenProjection struct {
	Audience          string `json:"audience,omitempty"`
	ExpirationSeconds *int64 `json:"expirationSeconds,omitempty"`
	Path              string `json:"path"`
}

// VolumeMount is where a container has a volume. It has all fields of core/v1: mounts of two
// containers are compared.
type VolumeMount struct {
	Name              string  `json:"name"`
	ReadOnly          bool    `json:"readOnly,omitempty"`
	RecursiveReadOnly *string `json:"recursiveReadOnly,omitempty"`
	MountPath         string  `json:"mountPath"`
	SubPath           string  `json:"subPath,omitempty"`
	MountPropagation  *string `json:"mountPropagation,omitempty"`
	SubPathExpr       string  `json:"subPathExpr,omitempty"`
}

// VolumeDevice is where a container has a block device.
type VolumeDevice struct {
	Name       string `json:"name"`
	DevicePath string `json:"devicePath"`
}
