package podapi

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"podstarter/k8sexec/options"
)

// Client is API over HTTP: client-go's REST client with a scheme that knows pods
// and nothing else. The typed core/v1 client registers every type of every API group
// through client-go/kubernetes/scheme; in a program that starts once per job that would
// waste 4 ms and 12 MB.
type Client struct {
	rest      rest.Interface
	namespace string
	name      string
}

var _ API = (*Client)(nil)

// New makes the client of the pilot's own pod. It makes no call.
func New(opt options.Options) (*Client, error) {
	scheme := podScheme()
	version := corev1.SchemeGroupVersion
	client, err := rest.RESTClientFor(&rest.Config{
		Host:    opt.Server,
		APIPath: "/api",
		// client-go reads the file again once a minute, so it notices when the kubelet
		// has rotated the token (transport/token_source.go).
		BearerTokenFile: filepath.Join(opt.KubernetesDir, "token"),
		TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(opt.KubernetesDir, "ca.crt")},
		UserAgent:       "podstarter",
		// A starter makes a handful of calls; the API server has its own fairness.
		QPS:            -1,
		WrapTransport:  func(rt http.RoundTripper) http.RoundTripper { return counting(closeWhenIdle(rt), opt.Called) },
		WarningHandler: rest.NoWarnings{},
		ContentConfig: rest.ContentConfig{
			GroupVersion: &version,
			// Generated decoders instead of reflection: half the time and memory.
			AcceptContentTypes:   runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON,
			ContentType:          runtime.ContentTypeProtobuf,
			NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
		},
	})
	if err != nil {
		return nil, fmt.Errorf("set up the connection to the API server at %s with the files in %s: %w", opt.Server, opt.KubernetesDir, err)
	}
	return &Client{rest: client, namespace: opt.PodNamespace, name: opt.PodName}, nil
}

// Of is the client of another pod of the namespace. Both use the same connections.
func (c *Client) Of(pod string) API { return &Client{rest: c.rest, namespace: c.namespace, name: pod} }

// idleTime is how long a connection stays open that is not used. A binding's calls follow
// each other faster, and then there is none for as long as the job runs.
const idleTime = 2 * time.Second

// closeWhenIdle sets it: client-go's transport would keep the connection for 90 s.
func closeWhenIdle(rt http.RoundTripper) http.RoundTripper {
	if t, ok := rt.(*http.Transport); ok {
		t.IdleConnTimeout = idleTime
	}
	return rt
}

// counting tells called of each request that was answered or failed.
func counting(rt http.RoundTripper, called func(verb string, code int)) http.RoundTripper {
	if called == nil {
		return rt
	}
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		answer, err := rt.RoundTrip(r)
		code := 0
		if err == nil {
			code = answer.StatusCode
		}
		called(verbOf(r), code)
		return answer, err
	})
}

// verbOf is the API server's name for what a request does.
func verbOf(r *http.Request) string {
	switch {
	case r.Method == http.MethodGet && r.URL.Query().Has("watch"):
		return "watch"
	case r.Method == http.MethodPost:
		return "create"
	}
	return strings.ToLower(r.Method)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func podScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Pod{}, &corev1.PodList{})
	metav1.AddToGroupVersion(scheme, corev1.SchemeGroupVersion)
	return scheme
}

// request begins a request that is made once. By itself client-go retries silently up
// to ten times; here Backend.patient of k8sexec retries, and logs it.
func (c *Client) request(verb string) *rest.Request { return c.rest.Verb(verb).MaxRetries(0) }

func (c *Client) Get(ctx context.Context) (*corev1.Pod, error) {
	pod := new(corev1.Pod)
	err := c.request(http.MethodGet).Namespace(c.namespace).Resource("pods").Name(c.name).Do(ctx).Into(pod)
	return pod, err
}

func (c *Client) Patch(ctx context.Context, patch []byte, dryRun bool) (*corev1.Pod, error) {
	return c.patch(ctx, patch, dryRun)
}

func (c *Client) Resize(ctx context.Context, patch []byte, dryRun bool) (*corev1.Pod, error) {
	return c.patch(ctx, patch, dryRun, "resize")
}

func (c *Client) patch(ctx context.Context, patch []byte, dryRun bool, subresource ...string) (*corev1.Pod, error) {
	pod := new(corev1.Pod)
	request := c.rest.Patch(types.StrategicMergePatchType).MaxRetries(0).Namespace(c.namespace).Resource("pods").Name(c.name).SubResource(subresource...).Body(patch)
	if dryRun {
		request.Param("dryRun", metav1.DryRunAll)
	}
	err := request.Do(ctx).Into(pod)
	return pod, err
}

func (c *Client) Watch(ctx context.Context, resourceVersion string) (watch.Interface, error) {
	// A selector on the name makes this a request about one named object, which a
	// Role with resourceNames may allow (apiserver endpoints/request/requestinfo.go).
	return c.request(http.MethodGet).Namespace(c.namespace).Resource("pods").
		Param("watch", "true").
		Param("fieldSelector", fields.OneTermEqualSelector("metadata.name", c.name).String()).
		Param("resourceVersion", resourceVersion).
		Watch(ctx)
}

// neighbourTime is how long the API server is watched for another pod, in seconds.
// Existing pods are reported at once.
const neighbourTime = "2"

// Neighbour watches instead of listing: a pilot has no permission to list.
func (c *Client) Neighbour(ctx context.Context) (string, error) {
	w, err := c.rest.Get().Namespace(c.namespace).Resource("pods").
		Param("watch", "true").Param("resourceVersion", "0").Param("timeoutSeconds", neighbourTime).Watch(ctx)
	if err != nil {
		return "", err
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if pod, ok := e.Object.(*corev1.Pod); ok && pod.Name != c.name && e.Type == watch.Added {
			return pod.Name, nil
		}
	}
	return "", ctx.Err()
}

func (c *Client) TryPatchOf(ctx context.Context, pod string, patch []byte) error {
	return c.rest.Patch(types.StrategicMergePatchType).Namespace(c.namespace).Resource("pods").Name(pod).
		Param("dryRun", metav1.DryRunAll).Body(patch).Do(ctx).Error()
}

// May creates a SelfSubjectAccessReview, in JSON by hand: every starter would have to
// register its types, although only an audit asks.
func (c *Client) May(ctx context.Context, q Right) (bool, error) {
	type spec struct {
		Attributes Right `json:"resourceAttributes"`
	}
	body, err := json.Marshal(map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec{q}})
	if err != nil {
		return false, fmt.Errorf("encode a question about the right to %s: %w", q, err)
	}
	text, err := c.rest.Post().AbsPath("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").
		SetHeader("Content-Type", runtime.ContentTypeJSON).SetHeader("Accept", runtime.ContentTypeJSON).Body(body).Do(ctx).Raw()
	if err != nil {
		return false, err
	}
	var answer struct{ Status struct{ Allowed bool } }
	if err := json.Unmarshal(text, &answer); err != nil {
		return false, fmt.Errorf("read the answer to a question about the right to %s: %w", q, err)
	}
	return answer.Status.Allowed, nil
}
