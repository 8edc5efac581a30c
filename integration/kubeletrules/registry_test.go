//go:build pool

package kubeletrules

import (
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// registry is one on this machine that has no image. It does not answer for images whose
// name begins with hang, until a test lets it.
type registry struct {
	address string
	let     chan struct{}
	over    <-chan struct{} // the test's end, before its pods are deleted
	mu      sync.Mutex
	asked   map[string]int // by name and tag
	news    chan string    // each first question
}

func newRegistry(t *testing.T) *registry {
	t.Helper()
	r := &registry{let: make(chan struct{}), over: t.Context().Done(), asked: map[string]int{}, news: make(chan string, 100)}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.address = listener.Addr().String()
	server := &http.Server{Handler: http.HandlerFunc(r.serve)}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { server.Close() })
	return r
}

func (r *registry) serve(w http.ResponseWriter, q *http.Request) {
	// v2/NAME/manifests/TAG; the client asks first by HEAD, then by GET.
	name, tag, ok := strings.Cut(strings.TrimPrefix(q.URL.Path, "/v2/"), "/manifests/")
	if ok && q.Method == http.MethodHead {
		r.mu.Lock()
		r.asked[name+":"+tag]++
		first := r.asked[name+":"+tag] == 1
		r.mu.Unlock()
		if first {
			r.news <- name + ":" + tag
		}
	}
	if strings.HasPrefix(name, "hang") {
		select {
		case <-r.let:
		case <-r.over:
		case <-q.Context().Done():
			return
		}
	}
	http.NotFound(w, q)
}

// image is the reference of an image here.
func (r *registry) image(name string) string { return r.address + "/" + name }

// waitPull waits until somebody begins to pull an image that nobody has pulled before.
func (r *registry) waitPull(p *pod, image string) {
	p.t.Helper()
	for {
		select {
		case asked := <-r.news:
			if asked == image {
				return
			}
		case <-p.ctx.Done():
			p.t.Fatalf("nobody pulls %s\n%s", image, p.history(0))
		}
	}
}
