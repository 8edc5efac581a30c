package podfailures

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Rule says what happens to the requests about one pod. The zero value changes nothing.
type Rule struct {
	// Cut closes every connection about the pod as if the API server were not there.
	Cut bool
	// Token replaces the token that the client shows.
	Token string
	// Answer, if not nil, may answer in place of the API server; n counts the requests of that verb (get, patch, watch)
	// since the rule was set, from 1.
	Answer func(verb string, n int) *Refusal
	// Pod, if not nil, changes the pod in every answer that shows it.
	Pod func(pod map[string]any)
	// Events, if above 0, is the number of events after which a watch is closed.
	Events int
}

// Refusal is an answer of the API server other than success.
type Refusal struct {
	Code            int
	Reason, Message string
}

// status is the refusal as the API server words it (metav1.Status).
func (r Refusal) status() []byte {
	text, _ := json.Marshal(map[string]any{
		"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Failure",
		"code": r.Code, "reason": r.Reason, "message": r.Message,
	})
	return text
}

// Proxy stands between execution points and the API server.
type Proxy struct {
	upstream *url.URL
	client   *http.Transport
	listener net.Listener
	server   *http.Server

	mu    sync.Mutex
	rules map[string]*active
}

// active is a rule while it holds.
type active struct {
	Rule
	seen map[string]int
	over context.Context
	end  context.CancelFunc
}

// NewProxy listens on a free port of the loopback. The directory of the cluster's keys has the API server's own
// certificate, which clients expect.
func NewProxy(server, keys string) (*Proxy, error) {
	upstream, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("starting the proxy: %w", err)
	}
	own, err := tls.LoadX509KeyPair(filepath.Join(keys, "apiserver.crt"), filepath.Join(keys, "apiserver.key"))
	if err != nil {
		return nil, fmt.Errorf("starting the proxy: %w", err)
	}
	ca, err := os.ReadFile(filepath.Join(keys, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("starting the proxy: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	p := &Proxy{
		upstream: upstream, rules: map[string]*active{},
		client: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true},
	}
	if p.listener, err = tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{own}, NextProtos: []string{"http/1.1"}}); err != nil {
		return nil, fmt.Errorf("starting the proxy: %w", err)
	}
	quiet := log.New(io.Discard, "", 0)
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: time.Minute, ErrorLog: quiet}
	go func() { _ = p.server.Serve(p.listener) }()
	return p, nil
}

// Port is where the proxy listens.
func (p *Proxy) Port() int { return p.listener.Addr().(*net.TCPAddr).Port }

// Close ends the proxy and all connections.
func (p *Proxy) Close() error { return p.server.Close() }

// Set puts a rule into force for a pod, in place of the one before. Requests that the old rule keeps waiting are cut
// off.
func (p *Proxy) Set(pod string, r Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old := p.rules[pod]; old != nil {
		old.end()
	}
	a := &active{Rule: r, seen: map[string]int{}}
	a.over, a.end = context.WithCancel(context.Background())
	p.rules[pod] = a
}

// rule is the rule for a pod; n counts this request.
func (p *Proxy) rule(pod, verb string) (a *active, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a = p.rules[pod]; a == nil {
		a = &active{seen: map[string]int{}}
		a.over, a.end = context.WithCancel(context.Background())
		p.rules[pod] = a
	}
	a.seen[verb]++
	return a, a.seen[verb]
}

// Seen is how many requests of a verb about a pod have come since the rule was set.
func (p *Proxy) Seen(pod, verb string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if a := p.rules[pod]; a != nil {
		return a.seen[verb]
	}
	return 0
}

// about tells which pod a request is about, and what is asked.
func about(r *http.Request) (pod, verb string) {
	query := r.URL.Query()
	if query.Get("watch") != "" {
		_, name, _ := strings.Cut(query.Get("fieldSelector"), "metadata.name=")
		return name, "watch"
	}
	_, name, _ := strings.Cut(r.URL.Path, "/pods/")
	return name, strings.ToLower(r.Method)
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	pod, verb := about(r)
	rule, n := p.rule(pod, verb)
	if rule.Cut {
		panic(http.ErrAbortHandler)
	}
	if rule.Answer != nil {
		if refusal := rule.Answer(verb, n); refusal != nil {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(refusal.Code)
			_, _ = w.Write(refusal.status())
			return
		}
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(rule.over, cancel)()
	out := &httputil.ReverseProxy{
		Transport: p.client, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(pr *httputil.ProxyRequest) {
			pr.SetURL(p.upstream)
			// The proxy must be able to read what it changes.
			pr.Out.Header.Set("Accept", "application/json")
			pr.Out.Header.Del("Accept-Encoding")
			if rule.Token != "" {
				pr.Out.Header.Set("Authorization", "Bearer "+rule.Token)
			}
		},
		ModifyResponse: func(resp *http.Response) error {
			switch {
			case resp.StatusCode != http.StatusOK:
				return nil
			case verb == "watch":
				resp.Body = rule.changeEvents(resp.Body)
				return nil
			}
			return rule.changeBody(resp)
		},
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	out.ServeHTTP(w, r.WithContext(ctx))
}

// changeBody changes the pod in an answer.
func (a *active) changeBody(resp *http.Response) error {
	if a.Pod == nil {
		return nil
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	var pod map[string]any
	if err := json.Unmarshal(text, &pod); err != nil {
		return err
	}
	a.Pod(pod)
	if text, err = json.Marshal(pod); err != nil {
		return err
	}
	resp.Body = io.NopCloser(bytes.NewReader(text))
	resp.Header.Set("Content-Length", strconv.Itoa(len(text)))
	return nil
}

// changeEvents changes the pods in a stream of watch events, and ends it after the rule's number of events.
func (a *active) changeEvents(body io.ReadCloser) io.ReadCloser {
	if a.Pod == nil && a.Events == 0 {
		return body
	}
	reader, writer := io.Pipe()
	go func() {
		defer body.Close()
		in, out := json.NewDecoder(body), json.NewEncoder(writer)
		for told := 0; a.Events == 0 || told < a.Events; told++ {
			var event struct {
				Type   string         `json:"type"`
				Object map[string]any `json:"object"`
			}
			err := in.Decode(&event)
			if err == nil {
				if a.Pod != nil && event.Object["kind"] == "Pod" {
					a.Pod(event.Object)
				}
				err = out.Encode(event)
			}
			if err != nil {
				_ = writer.CloseWithError(errors.Join(io.EOF, err))
				return
			}
		}
		_ = writer.Close()
	}()
	return struct {
		io.Reader
		io.Closer
	}{reader, closers{reader, body}}
}

type closers []io.Closer

func (c closers) Close() error {
	var errs []error
	for _, one := range c {
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
}
