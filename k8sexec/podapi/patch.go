package podapi

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// The pod's annotations that belong to a payload container. Users of the pod may
// read them.
const (
	NonceAnnotation        = "podstarter/nonce-"
	DefaultImageAnnotation = "podstarter/default-image-"
	StirAnnotation         = "podstarter/stirred-"
)

// nonceBytes makes nonces too long to guess: a wrapper that knows the nonce is the
// right one.
const nonceBytes = 16

// NewNonce gives a nonce for one binding.
func NewNonce() string {
	b := make([]byte, nonceBytes)
	_, _ = rand.Read(b) // never fails (crypto/rand)
	return hex.EncodeToString(b)
}

// Binding is what a patch gives to one payload container.
type Binding struct {
	Container, Spec, Nonce string
	// DefaultImage is the image that the container was created with, empty if the pod's
	// annotation says so already.
	DefaultImage string
}

// BindingPatch is a strategic merge patch: lists of containers are merged by name, so
// an index in the list need not be known, and patches of different containers do not
// conflict.
func BindingPatch(bindings ...Binding) ([]byte, error) {
	type namedImage struct {
		Name  string `json:"name"`
		Image string `json:"image"`
	}
	var patch struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec struct {
			Containers []namedImage `json:"containers"`
		} `json:"spec"`
	}
	patch.Metadata.Annotations = make(map[string]string)
	for _, b := range bindings {
		patch.Metadata.Annotations[NonceAnnotation+b.Container] = b.Nonce
		if b.DefaultImage != "" {
			patch.Metadata.Annotations[DefaultImageAnnotation+b.Container] = b.DefaultImage
		}
		patch.Spec.Containers = append(patch.Spec.Containers, namedImage{b.Container, b.Spec})
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode a patch of %d containers: %w", len(bindings), err)
	}
	return data, nil
}

// ImagePatch changes the image of one container.
func ImagePatch(container, spec string) ([]byte, error) {
	type namedImage struct {
		Name  string `json:"name"`
		Image string `json:"image"`
	}
	return json.Marshal(map[string]any{"spec": map[string]any{"containers": []namedImage{{container, spec}}}})
}

// AnnotationPatch changes one annotation.
func AnnotationPatch(name, value string) ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{name: value}}})
}

// SpecOf finds a container in the pod's spec.
func SpecOf(pod *corev1.Pod, container string) *corev1.Container {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == container {
			return &pod.Spec.Containers[i]
		}
	}
	return nil
}

// StatusOf finds a container in the pod's status; the zero value if the kubelet
// has not reported it.
func StatusOf(pod *corev1.Pod, container string) corev1.ContainerStatus {
	for _, s := range pod.Status.ContainerStatuses {
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
	for _, c := range pod.Spec.Containers {
		if c.Name == container {
			limit = c.Resources.Limits.Memory().Value()
		}
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
