package podfailures

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"podstarter/integration/harness"
)

// start starts a proxy before a server that shows one pod, and a watch of two events.
func start(t *testing.T) (*Proxy, *http.Client, string) {
	t.Helper()
	const pod = `{"kind":"Pod","metadata":{"name":"a","generation":2},"spec":{"containers":[{"name":"payload","image":"i"}]},` +
		`"status":{"phase":"Running","observedGeneration":2,"containerStatuses":[{"name":"payload","state":{"running":{}}}]}}`
	upstream := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Accept"); got != "application/json" {
			t.Errorf("Accept is %q", got)
		}
		w.Header().Set("Token", r.Header.Get("Authorization"))
		if r.URL.Query().Get("watch") == "" {
			fmt.Fprint(w, pod)
			return
		}
		for range 2 {
			fmt.Fprintf(w, `{"type":"MODIFIED","object":%s}`+"\n", pod)
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	}))
	t.Cleanup(upstream.Close)
	keys := t.TempDir()
	cert := upstream.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	crt := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]})
	for name, data := range map[string][]byte{
		"apiserver.crt": crt, "ca.crt": crt, "apiserver.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
	} {
		if err := os.WriteFile(filepath.Join(keys, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p, err := NewProxy(upstream.URL, keys)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(crt)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	t.Cleanup(client.CloseIdleConnections)
	return p, client, fmt.Sprintf("https://127.0.0.1:%d", p.Port())
}

// answer is what came back; code 0 is no answer.
type answer struct {
	code        int
	token, body string
}

func get(t *testing.T, client *http.Client, url string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer mine")
	resp, err := client.Do(r)
	if err != nil {
		return answer{body: err.Error()}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{body: err.Error()}
	}
	return answer{resp.StatusCode, resp.Header.Get("Token"), string(body)}
}

func TestProxy(t *testing.T) {
	p, client, base := start(t)
	a := base + "/api/v1/namespaces/x/pods/a"
	if got := get(t, client, a); !strings.Contains(got.body, `"Running"`) || got.token != "Bearer mine" {
		t.Errorf("without a rule: %+v", got)
	}
	p.Set("a", Rule{Token: "other"})
	if got := get(t, client, a); got.token != "Bearer other" {
		t.Errorf("with another token: %+v", got)
	}
	p.Set("a", Rule{Pod: Over("i", "Evicted", "low")})
	if got := get(t, client, a); !strings.Contains(got.body, `"Evicted"`) {
		t.Errorf("the pod was not changed: %+v", got)
	}
	if got := get(t, client, base+"/api/v1/namespaces/x/pods/b"); strings.Contains(got.body, "Evicted") {
		t.Errorf("the rule is about another pod: %+v", got)
	}
	p.Set("a", Rule{Pod: Over("other", "Evicted", "low")})
	if got := get(t, client, a); strings.Contains(got.body, "Evicted") {
		t.Errorf("the rule is about another image: %+v", got)
	}
	p.Set("a", Rule{Answer: func(verb string, n int) *Refusal {
		if verb != "get" || n > 1 {
			return nil
		}
		return &Refusal{http.StatusConflict, "Conflict", "again"}
	}})
	if got := get(t, client, a); got.code != http.StatusConflict || !strings.Contains(got.body, `"again"`) {
		t.Errorf("first request: %+v", got)
	}
	if got := get(t, client, a); got.code != http.StatusOK || p.Seen("a", "get") != 2 {
		t.Errorf("second request: %+v, %d seen", got, p.Seen("a", "get"))
	}
	p.Set("a", Rule{Cut: true})
	if got := get(t, client, a); got.code != 0 {
		t.Errorf("the connection was not cut: %+v", got)
	}
}

func TestProxyWatch(t *testing.T) {
	p, client, base := start(t)
	watch := base + "/api/v1/namespaces/x/pods?watch=true&fieldSelector=metadata.name%3Da"
	p.Set("a", Rule{Pod: Waiting("i", "ErrImagePull", "no"), Events: 1})
	if got := get(t, client, watch); strings.Count(got.body, "ErrImagePull") != 1 || strings.Count(got.body, "MODIFIED") != 1 {
		t.Errorf("one event, changed: %+v", got)
	}
	// A watch that goes on ends with its rule.
	p.Set("a", Rule{})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, watch, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for range 2 {
		var event struct{ Type string }
		if !lines.Scan() || json.Unmarshal(lines.Bytes(), &event) != nil || event.Type != "MODIFIED" {
			t.Fatalf("event %q, %v", lines.Text(), lines.Err())
		}
	}
	p.Set("a", Rule{Cut: true})
	if lines.Scan() {
		t.Errorf("another event: %s", lines.Text())
	}
}

func TestOutcome(t *testing.T) {
	event := func(n int, head string, body ...string) harness.Event {
		return harness.Event{Number: n, Headline: head, Body: body}
	}
	for want, events := range map[string][]harness.Event{
		"held 35/2": {event(harness.EventRemoteError, "Error from starter", "no such image", "Code 35 Subcode 2"),
			event(harness.EventEvicted, "Job was evicted. Code 35 Subcode 2"), event(harness.EventHeld, "Job was held.", "no such image", "Code 35 Subcode 2")},
		"requeued 1021/0": {event(harness.EventRemoteError, "Error from starter", "away", "Code 1021 Subcode 0"), event(harness.EventEvicted, "Job was evicted. Code 1021 Subcode 0")},
		"evicted 1013/0":  {event(harness.EventEvicted, "Job was evicted. Code 1013 Subcode 0", "Reason: x")},
		"lost": {event(harness.EventDisconnected, "Job disconnected, attempting to reconnect", "Socket between submit and execute hosts closed unexpectedly"),
			event(harness.EventReconnectFailed, "Job reconnection failed", "Job disconnected too long: JobLeaseDuration (90 seconds) expired")},
		"exit 7": {event(harness.EventExecute, "Job executing"), event(harness.EventTerminated, "Job terminated.", "(1) Normal termination (return value 7)")},
	} {
		o, ok := OutcomeOf(events)
		if !ok || o.String() != want {
			t.Errorf("%s (%v), want %s", o, ok, want)
		}
		if _, ok := OutcomeOf(events[:1]); ok && want[0] == 'h' {
			t.Errorf("%s: decided too early", want)
		}
	}
}

func TestPlain(t *testing.T) {
	o := Outcome{Kind: "requeued", Words: "Error from starter on slot1@faults-3@127-0-0-1.pool.invalid:\n" +
		`The registry of image "127.0.0.1:1234/cut/x-mwpu3ooe:1" cannot be reached (Get "http://10.0.0.7:55/").` + "\nCode 1021 Subcode 0"}
	if got, want := plain(o), `The registry of image "REGISTRY/cut/x:1" cannot be reached (Get "http://REGISTRY/").`; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
