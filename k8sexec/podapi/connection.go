package podapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"podstarter/k8sexec/corev1"
	"podstarter/k8sexec/options"
)

// Bounds of the connection. Those of times are client-go's (rest/config.go,
// transport/cache.go, apimachinery pkg/util/net/http.go), except idleTime.
const (
	dialTime  = 30 * time.Second
	keepAlive = 30 * time.Second
	tlsTime   = 10 * time.Second
	// A watch on which nothing came for quietTime is asked for a sign of life, which must
	// come within pingTime.
	quietTime = 30 * time.Second
	pingTime  = 15 * time.Second
	// idleTime is how long a connection stays open that is not used. A binding's calls follow
	// each other faster, and then there is none for as long as the job runs.
	idleTime = 2 * time.Second

	// maxAnswer bounds an answer, and an event of a watch: etcd takes no object of more than 1.5 MiB.
	maxAnswer = 8 << 20
	// maxForeign is how much of an answer that is no Status becomes part of a message.
	maxForeign = 2048
)

// connection is how the API server is reached.
type connection struct {
	client *http.Client
	server url.URL
	token  string // the file
}

// New makes the client of the pilot's own pod. It makes no call.
func New(opt options.Options) (*Client, error) {
	failed := func(err error) (*Client, error) {
		return nil, fmt.Errorf("set up the connection to the API server at %s with the files in %s: %w", opt.Server, opt.KubernetesDir, err)
	}
	server, err := url.Parse(opt.Server)
	if err != nil {
		return failed(err)
	}
	ca, err := os.ReadFile(filepath.Join(opt.KubernetesDir, "ca.crt"))
	if err != nil {
		return failed(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return failed(errors.New("ca.crt has no certificate in PEM"))
	}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: dialTime, KeepAlive: keepAlive}).DialContext,
		TLSClientConfig:     &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout: tlsTime,
		IdleConnTimeout:     idleTime,
		ForceAttemptHTTP2:   true,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: quietTime, PingTimeout: pingTime},
	}
	conn := &connection{server: *server, token: filepath.Join(opt.KubernetesDir, "token")}
	conn.client = &http.Client{
		Transport: counting(transport, opt.Called),
		// No API server redirects, and the token is for no other.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &Client{conn: conn, namespace: opt.PodNamespace, name: opt.PodName}, nil
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

// request is made once: Backend.patient of k8sexec tries again, and logs it.
type request struct {
	method   string
	path     []string // parts of it, as they are before URL encoding
	query    url.Values
	body     []byte
	contents string // type of the body
}

func (r request) String() string { return r.method + " /" + strings.Join(r.path, "/") }

// send makes a request. The caller closes the answer, which is one of success.
func (c *connection) send(ctx context.Context, r request) (*http.Response, error) {
	// The kubelet replaces the token before it expires.
	token, err := os.ReadFile(c.token)
	if err != nil {
		return nil, fmt.Errorf("%s: read the pilot's token: %w", r, err)
	}
	to := *c.server.JoinPath(escaped(r.path)...)
	to.RawQuery = r.query.Encode()
	out, err := http.NewRequestWithContext(ctx, r.method, to.String(), bytes.NewReader(r.body))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r, err)
	}
	out.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	out.Header.Set("Accept", plainJSON)
	out.Header.Set("User-Agent", "podstarter")
	if r.contents != "" {
		out.Header.Set("Content-Type", r.contents)
	}
	answer, err := c.client.Do(out)
	if err != nil {
		return nil, err // it names method and address
	}
	if answer.StatusCode < http.StatusOK || answer.StatusCode >= http.StatusMultipleChoices {
		defer answer.Body.Close()
		return nil, refusal(r, answer)
	}
	return answer, nil
}

// escaped keeps a part of a path one part, whatever is in it.
func escaped(path []string) []string {
	parts := make([]string, len(path))
	for i, part := range path {
		parts[i] = url.PathEscape(part)
	}
	return parts
}

// refusal reads an answer that is none of success.
func refusal(r request, answer *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	var status struct {
		Kind string `json:"kind"`
		corev1.Status
	}
	if err == nil && json.Unmarshal(text, &status) == nil && status.Kind == "Status" {
		status.Code = answer.StatusCode
		return &corev1.StatusError{Status: status.Status}
	}
	return &corev1.StatusError{Foreign: true, Status: corev1.Status{
		Code: answer.StatusCode, Message: fmt.Sprintf("%s: the answer is %s: %q", r, answer.Status, text[:min(len(text), maxForeign)]),
	}}
}

// call makes a request and reads the answer into a value, which may be nil.
func (c *connection) call(ctx context.Context, r request, into any) error {
	answer, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s: read the answer: %w", r, err)
	case len(text) > maxAnswer:
		return fmt.Errorf("%s: the answer has more than %d bytes", r, maxAnswer)
	case into == nil:
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: read the answer %.200q: %w", r, text, err)
	}
	return nil
}
