package podapi

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// API is what the pilot asks of the API server, mostly about its own pod.
type API interface {
	// Get needs the permission "get".
	Get(ctx context.Context) (*corev1.Pod, error)
	// Patch applies a strategic merge patch and returns the new pod. With dryRun it
	// changes nothing. It needs the permission "patch".
	Patch(ctx context.Context, patch []byte, dryRun bool) (*corev1.Pod, error)
	// Resize is Patch for the subresource resize, which changes requests and limits of
	// containers that run. It needs the permission "patch" on pods/resize.
	Resize(ctx context.Context, patch []byte, dryRun bool) (*corev1.Pod, error)
	// Watch gives all changes since resourceVersion, until its channel is closed.
	// It needs the permission "watch".
	Watch(ctx context.Context, resourceVersion string) (watch.Interface, error)
	// Neighbour names another pod of the namespace, empty if there is none. It
	// needs a permission "watch" that names no pod.
	Neighbour(ctx context.Context) (string, error)
	// TryPatchOf is a dry run of a patch of another pod.
	TryPatchOf(ctx context.Context, pod string, patch []byte) error
	// May asks whether a right is granted. It needs a permission that every
	// authenticated user has by default (ClusterRole system:basic-user).
	May(ctx context.Context, q Right) (bool, error)
}

// Right is a question to the API server (authorization/v1 ResourceAttributes).
type Right struct {
	Namespace   string `json:"namespace,omitempty"`
	Verb        string `json:"verb"`
	Group       string `json:"group,omitempty"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	Name        string `json:"name,omitempty"`
}

func (q Right) String() string {
	s := q.Verb + " " + q.Resource
	if q.Subresource != "" {
		s += "/" + q.Subresource
	}
	if q.Group != "" && q.Group != "*" {
		s += "." + q.Group
	}
	if q.Namespace == "" {
		s += " in all namespaces"
	}
	return s
}
