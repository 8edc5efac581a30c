package podapi

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
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
	// Sidecar says that the container is one of the pod's initContainers.
	Sidecar bool
	// DefaultImage is the image that the container was created with, empty if the pod's
	// annotation says so already.
	DefaultImage string
}

type namedImage struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

// BindingPatch is a strategic merge patch: lists of containers are merged by name, so
// an index in the list need not be known, and patches of different containers do not
// conflict.
func BindingPatch(bindings ...Binding) ([]byte, error) {
	var patch struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec struct {
			Containers     []namedImage `json:"containers,omitempty"`
			InitContainers []namedImage `json:"initContainers,omitempty"`
		} `json:"spec"`
	}
	patch.Metadata.Annotations = make(map[string]string)
	for _, b := range bindings {
		patch.Metadata.Annotations[NonceAnnotation+b.Container] = b.Nonce
		if b.DefaultImage != "" {
			patch.Metadata.Annotations[DefaultImageAnnotation+b.Container] = b.DefaultImage
		}
		list := &patch.Spec.Containers
		if b.Sidecar {
			list = &patch.Spec.InitContainers
		}
		*list = append(*list, namedImage{b.Container, b.Spec})
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encode a patch of %d containers: %w", len(bindings), err)
	}
	return data, nil
}

// ImagePatch changes the image of one container that is no sidecar.
func ImagePatch(container, spec string) ([]byte, error) {
	return json.Marshal(map[string]any{"spec": map[string]any{"containers": []namedImage{{container, spec}}}})
}

// AnnotationPatch changes one annotation.
func AnnotationPatch(name, value string) ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{name: value}}})
}
