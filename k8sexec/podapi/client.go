package podapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"podstarter/k8sexec/corev1"
)

// The types of contents (HTTP's Content-Type) that starters send.
const (
	plainJSON      = "application/json"
	strategicPatch = "application/strategic-merge-patch+json"
)

// Client is API over HTTP, by net/http and encoding/json. client-go would bring its types,
// its codecs and its plugins for credentials: 6 MB in a program that starts once for each job.
type Client struct {
	conn      *connection
	namespace string
	name      string
}

var _ API = (*Client)(nil)

// Of is the client of another pod of the namespace. Both use the same connections.
func (c *Client) Of(pod string) API { return &Client{conn: c.conn, namespace: c.namespace, name: pod} }

// pods is where the API server has the namespace's pods, or one of them, or a part of one.
func (c *Client) pods(parts ...string) []string {
	return append([]string{"api", "v1", "namespaces", c.namespace, "pods"}, parts...)
}

// pod makes a call that is answered with a pod.
func (c *Client) pod(ctx context.Context, r request) (*corev1.Pod, error) {
	var answer struct {
		Kind string `json:"kind"`
		corev1.Pod
	}
	if err := c.conn.call(ctx, r, &answer); err != nil {
		return nil, err
	}
	if answer.Kind != "Pod" {
		return nil, fmt.Errorf("%s: the answer is no pod, its kind is %.100q", r, answer.Kind)
	}
	return &answer.Pod, nil
}

// Get implements API.
func (c *Client) Get(ctx context.Context) (*corev1.Pod, error) {
	return c.pod(ctx, request{method: http.MethodGet, path: c.pods(c.name)})
}

// Patch implements API.
func (c *Client) Patch(ctx context.Context, patch []byte, dryRun bool) (*corev1.Pod, error) {
	return c.pod(ctx, patchOf(c.pods(c.name), patch, dryRun))
}

// Resize implements API.
func (c *Client) Resize(ctx context.Context, patch []byte, dryRun bool) (*corev1.Pod, error) {
	return c.pod(ctx, patchOf(c.pods(c.name, "resize"), patch, dryRun))
}

func patchOf(path []string, patch []byte, dryRun bool) request {
	r := request{method: http.MethodPatch, path: path, body: patch, contents: strategicPatch}
	if dryRun {
		r.query = url.Values{"dryRun": {"All"}}
	}
	return r
}

// Watch implements API.
func (c *Client) Watch(ctx context.Context, resourceVersion string) (Watcher, error) {
	// A selector on the name makes this a request about one named object, which a
	// Role with resourceNames may allow (apiserver endpoints/request/requestinfo.go).
	return c.conn.watch(ctx, request{method: http.MethodGet, path: c.pods(), query: url.Values{
		"watch": {"true"}, "fieldSelector": {"metadata.name=" + c.name}, "resourceVersion": {resourceVersion},
	}})
}

// neighbourTime is how long the API server is watched for another pod, in seconds.
// Existing pods are reported at once.
const neighbourTime = "2"

// Neighbour watches instead of listing: a pilot has no permission to list.
func (c *Client) Neighbour(ctx context.Context) (string, error) {
	w, err := c.conn.watch(ctx, request{method: http.MethodGet, path: c.pods(), query: url.Values{
		"watch": {"true"}, "resourceVersion": {"0"}, "timeoutSeconds": {neighbourTime},
	}})
	if err != nil {
		return "", err
	}
	defer w.Stop()
	for e := range w.Events() {
		if e.Type == Added && e.Pod.Name != c.name {
			return e.Pod.Name, nil
		}
	}
	return "", ctx.Err()
}

// TryPatchOf implements API.
func (c *Client) TryPatchOf(ctx context.Context, pod string, patch []byte) error {
	return c.conn.call(ctx, patchOf(c.pods(pod), patch, true), nil)
}

// May creates a SelfSubjectAccessReview.
func (c *Client) May(ctx context.Context, q Right) (bool, error) {
	type spec struct {
		Attributes Right `json:"resourceAttributes"`
	}
	body, err := json.Marshal(map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec{q}})
	if err != nil {
		return false, fmt.Errorf("encode a question about the right to %s: %w", q, err)
	}
	var answer struct{ Status struct{ Allowed bool } }
	err = c.conn.call(ctx, request{
		method: http.MethodPost, path: []string{"apis", "authorization.k8s.io", "v1", "selfsubjectaccessreviews"}, body: body, contents: plainJSON,
	}, &answer)
	return answer.Status.Allowed, err
}
