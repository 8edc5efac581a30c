package cluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// Namespace is where everything of the pool lives.
const Namespace = "podstarter"

// API talks to the API server: the few requests that the pool needs, in plain JSON.
type API struct {
	Server string
	client *http.Client
}

// Holders of certificates for NewAPI.
const (
	Admin    = "admin"
	ThisNode = nodeFile
)

// NewAPI returns an API for the server's base address, as the holder of one of the client certificates.
func NewAPI(server string, pki PKI, holder string) (*API, error) {
	cert, err := tls.LoadX509KeyPair(pki.Path(holder+".crt"), pki.Path(holder+".key"))
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of %s: %w", holder, err)
	}
	ca, err := os.ReadFile(pki.Path("ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("reading the authority's certificate: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &API{Server: server, client: &http.Client{
		Timeout: 30 * time.Second,
		Transport: &http.Transport{
			TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}},
			ForceAttemptHTTP2: true,
		},
	}}, nil
}

// A StatusError is an answer other than success.
type StatusError struct {
	Request string
	Code    int
	Body    string
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s: the API server answers %d: %s", e.Request, e.Code, e.Body)
}

// NotFound reports whether err is the API server's answer that there is no such object.
func NotFound(err error) bool {
	var status *StatusError
	return errors.As(err, &status) && status.Code == http.StatusNotFound
}

// Do sends one request, with in as its JSON body unless nil, and decodes the answer into out unless nil.
func (a *API) Do(ctx context.Context, method, path, contentType string, in, out any) error {
	return a.do(ctx, nil, method, path, contentType, in, out)
}

func (a *API) do(ctx context.Context, header http.Header, method, path, contentType string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, a.Server+path, body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	for name, values := range header {
		req.Header[name] = values
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := a.client.Do(req)
	if err != nil {
		return fmt.Errorf("asking the API server: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if resp.StatusCode/100 != 2 {
		return &StatusError{Request: method + " " + path, Code: resp.StatusCode, Body: strings.TrimSpace(string(text))}
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("%s %s: reading the answer: %w", method, path, err)
	}
	return nil
}

// Text returns what the API server answers to a GET that is no object, such as its metrics.
func (a *API) Text(ctx context.Context, path string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.Server+path, nil)
	if err != nil {
		return "", fmt.Errorf("GET %s: %w", path, err)
	}
	return text(a.client, req)
}

// text sends a request and returns the answer's body.
func text(client *http.Client, req *http.Request) (string, error) {
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", fmt.Errorf("GET %s: %w", req.URL, err)
	}
	if resp.StatusCode != http.StatusOK {
		return "", &StatusError{Request: "GET " + req.URL.Path, Code: resp.StatusCode, Body: strings.TrimSpace(string(body))}
	}
	return string(body), nil
}

// Object is a Kubernetes object as JSON has it.
type Object map[string]any

// String follows names through nested objects and returns the string there, or "".
func (o Object) String(names ...string) string {
	var v any = map[string]any(o)
	for _, n := range names {
		m, ok := v.(map[string]any)
		if !ok {
			return ""
		}
		v = m[n]
	}
	s, _ := v.(string)
	return s
}

// collections are the kinds in the pool's manifests.
var collections = map[string]struct {
	base       string
	namespaced bool
}{
	"Namespace":      {"/api/v1/namespaces", false},
	"Node":           {"/api/v1/nodes", false},
	"ServiceAccount": {"/api/v1/%s/serviceaccounts", true},
	"ConfigMap":      {"/api/v1/%s/configmaps", true},
	"Secret":         {"/api/v1/%s/secrets", true},
	"Pod":            {"/api/v1/%s/pods", true},
	"Role":           {"/apis/rbac.authorization.k8s.io/v1/%s/roles", true},
	"RoleBinding":    {"/apis/rbac.authorization.k8s.io/v1/%s/rolebindings", true},

	"RuntimeClass": {"/apis/node.k8s.io/v1/runtimeclasses", false},

	"ValidatingAdmissionPolicy":        {"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies", false},
	"ValidatingAdmissionPolicyBinding": {"/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings", false},
}

// path is where the object lives; its kind's collection if name is empty.
func path(kind, name string) (string, error) {
	c, ok := collections[kind]
	if !ok {
		return "", fmt.Errorf("a manifest holds a %s, which this program does not know how to apply", kind)
	}
	p := c.base
	if c.namespaced {
		p = fmt.Sprintf(c.base, "namespaces/"+Namespace)
	}
	if name != "" {
		p += "/" + name
	}
	return p, nil
}

// Apply creates the object or changes it as given (server-side apply).
func (a *API) Apply(ctx context.Context, o Object) error {
	p, err := path(o.String("kind"), o.String("metadata", "name"))
	if err != nil {
		return err
	}
	return a.Do(ctx, http.MethodPatch, p+"?fieldManager=pool&force=true", "application/apply-patch+yaml", o, nil)
}

// Create creates the object.
func (a *API) Create(ctx context.Context, o Object) (Object, error) {
	p, err := path(o.String("kind"), "")
	if err != nil {
		return nil, err
	}
	var out Object
	err = a.Do(ctx, http.MethodPost, p, "application/json", o, &out)
	return out, err
}

// Get returns an object; see NotFound.
func (a *API) Get(ctx context.Context, kind, name string) (Object, error) {
	p, err := path(kind, name)
	if err != nil {
		return nil, err
	}
	var out Object
	err = a.Do(ctx, http.MethodGet, p, "", nil, &out)
	return out, err
}

// List returns the objects of a kind.
func (a *API) List(ctx context.Context, kind string) ([]Object, error) {
	p, err := path(kind, "")
	if err != nil {
		return nil, err
	}
	var out struct{ Items []Object }
	err = a.Do(ctx, http.MethodGet, p, "", nil, &out)
	return out.Items, err
}

// ErrStays says that a pod that was deleted is still there.
var ErrStays = errors.New("it is not gone a minute after its deletion")

// DeletePod deletes a pod, gives it grace seconds, and waits until it is gone. The error is ErrStays if it does not go.
func (a *API) DeletePod(ctx context.Context, name string, grace int) error {
	p, err := path("Pod", name)
	if err != nil {
		return err
	}
	err = a.Do(ctx, http.MethodDelete, fmt.Sprintf("%s?gracePeriodSeconds=%d", p, grace), "", nil, nil)
	if NotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, fmt.Errorf("the pod %s: %w", name, ErrStays))
	defer cancel()
	return Poll(ctx, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		_, err := a.Get(ctx, "Pod", name)
		if NotFound(err) {
			return true, nil
		}
		return false, err
	})
}

// ForcePod removes a pod without its kubelet, and whatever finalizers it has.
func (a *API) ForcePod(ctx context.Context, name string) error {
	p, err := path("Pod", name)
	if err != nil {
		return err
	}
	err = a.Do(ctx, http.MethodPatch, p, "application/merge-patch+json", Object{"metadata": map[string]any{"finalizers": nil}}, nil)
	if err == nil {
		err = a.Do(ctx, http.MethodDelete, p+"?gracePeriodSeconds=0", "", nil, nil)
	}
	if NotFound(err) {
		return nil
	}
	return err
}

// Poll calls ready until it returns true or ctx ends; then it returns ctx's error and the last one of
// ready.
func Poll(ctx context.Context, every time.Duration, ready func(context.Context) (bool, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		ok, err := ready(ctx)
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			if err != nil {
				return fmt.Errorf("%w; last: %w", context.Cause(ctx), err)
			}
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
