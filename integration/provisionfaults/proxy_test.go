//go:build pool

package provisionfaults

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// call is a request of the provisioner.
type call struct {
	verb     string // list, watch, get, create, delete
	resource string
	body     string
	// cached says that a list need not be newer than what the API server has in its cache.
	cached bool
}

// fault is what becomes of a call.
type fault struct {
	// cut closes the connection; hang gives no answer until the rule is replaced.
	cut, hang bool
	// late lets the API server do what is asked, and closes the connection then.
	late bool
	// delay comes before all else.
	delay time.Duration
	// code, if it is not 0, is the answer.
	code            int
	reason, message string
	// answer, if it is not nil, is the answer, without the API server.
	answer any
}

// proxy stands between the provisioner and the API server.
type proxy struct {
	server *http.Server
	url    string

	mu   sync.Mutex
	rule func(call) fault
	over chan struct{}
	// expired counts answers and events that say 410.
	expired atomic.Int64
}

// newProxy starts a proxy with the API server's own certificate.
func newProxy(t *testing.T) *proxy {
	t.Helper()
	own, err := tls.LoadX509KeyPair(plane.Path("pki", "apiserver.crt"), plane.Path("pki", "apiserver.key"))
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(plane.CA())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{own}, NextProtos: []string{"http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	upstream, err := url.Parse(plane.Server())
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{url: "https://" + listener.Addr().String(), over: make(chan struct{}), rule: func(call) fault { return fault{} }}
	out := &httputil.ReverseProxy{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true},
		FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(upstream)
			r.Out.Header.Set("Accept", "application/json")
			r.Out.Header.Del("Accept-Encoding")
		},
		ModifyResponse: func(r *http.Response) error {
			r.Body = &reader{r.Body, p}
			return nil
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.server = &http.Server{ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(out, w, r) })}
	go func() { _ = p.server.Serve(listener) }()
	t.Cleanup(func() { p.set(nil); _ = p.server.Close() })
	return p
}

// reader looks for the words of an answer that says 410.
type reader struct {
	io.ReadCloser
	p *proxy
}

func (r *reader) Read(b []byte) (int, error) {
	n, err := r.ReadCloser.Read(b)
	if bytes.Contains(b[:n], []byte(`"code":410`)) {
		r.p.expired.Add(1)
	}
	return n, err
}

// set puts a rule into force; nil lets everything pass. Whatever passes now is cut off, except that an answer which is on its way comes
// to its end.
func (p *proxy) set(rule func(call) fault) {
	if rule == nil {
		rule = func(call) fault { return fault{} }
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rule = rule
	close(p.over)
	p.over = make(chan struct{})
}

func (p *proxy) serve(out http.Handler, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	c := call{verb: strings.ToLower(r.Method), body: string(body)}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	for i, part := range parts {
		if part == "namespaces" && len(parts) > i+2 {
			c.resource = parts[i+2]
			if c.verb == "get" && len(parts) == i+3 {
				c.verb = "list"
			}
		}
	}
	switch {
	case r.URL.Query().Get("watch") != "":
		c.verb = "watch"
	case c.verb == "post":
		c.verb = "create"
	}
	c.cached = c.verb == "list" && r.URL.Query().Has("resourceVersion")
	p.mu.Lock()
	f, over := p.rule(c), p.over
	p.mu.Unlock()
	wait := func(d <-chan time.Time) {
		select {
		case <-d:
		case <-over:
		case <-r.Context().Done():
		}
	}
	if f.delay > 0 {
		wait(time.After(f.delay))
	}
	switch {
	case f.cut:
		panic(http.ErrAbortHandler)
	case f.hang:
		wait(nil)
		panic(http.ErrAbortHandler)
	case f.code != 0:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(f.code)
		_ = json.NewEncoder(w).Encode(object{"kind": "Status", "apiVersion": "v1", "metadata": object{}, "status": "Failure", "code": f.code, "reason": f.reason, "message": f.message})
		return
	case f.answer != nil:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(f.answer)
		return
	case f.late:
		out.ServeHTTP(&nowhere{header: http.Header{}}, r.WithContext(context.WithoutCancel(r.Context())))
		panic(http.ErrAbortHandler)
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	if c.verb == "watch" {
		go func() {
			select {
			case <-over:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	out.ServeHTTP(w, r.WithContext(ctx))
}

// nowhere takes an answer that nobody gets.
type nowhere struct{ header http.Header }

func (n *nowhere) Header() http.Header         { return n.header }
func (n *nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (n *nowhere) WriteHeader(int)             {}
