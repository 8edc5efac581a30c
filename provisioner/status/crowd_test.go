package status

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// Whoever opens many connections and says nothing must not keep the kubelet from
// hearing that all is well: it would start the provisioner anew.
func TestCrowd(t *testing.T) {
	b := newWorld(t)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error)
	go func() { served <- b.Serve(ctx, listener) }()
	defer func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	for range 3 * maxConnections {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	client := http.Client{Timeout: 5 * time.Second}
	answer, err := client.Get("http://" + listener.Addr().String() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("/healthz answers %s", answer.Status)
	}
}

// stuck is an answer that nobody takes.
type stuck struct {
	http.ResponseWriter
	begun, end chan struct{}
}

func (s stuck) Write(p []byte) (int, error) {
	s.begun <- struct{}{}
	<-s.end
	return len(p), nil
}

// Pages and explanations have megabytes. So only some are written at a time.
func TestManyPages(t *testing.T) {
	h := newWorld(t).Handler()
	begun, end := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	for range maxRequests {
		wg.Go(func() {
			h.ServeHTTP(stuck{httptest.NewRecorder(), begun, end}, httptest.NewRequest(http.MethodGet, "/", nil))
		})
		<-begun
	}
	for path, want := range map[string]int{"/": http.StatusServiceUnavailable, "/healthz": http.StatusOK} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if text, _ := io.ReadAll(w.Body); w.Code != want || len(text) == 0 {
			t.Errorf("%s answers %d %q, want %d", path, w.Code, text, want)
		}
	}
	close(end)
	wg.Wait()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
	if w.Code != http.StatusOK {
		t.Errorf("/ answers %d after the others have ended", w.Code)
	}
}
