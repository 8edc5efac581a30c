// Package images serves images that do not compress, from a registry that sends only so
// much a second.
package images

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Registry serves images over loopback. It keeps no layers: each is made anew from its
// image's name whenever it is sent.
type Registry struct {
	listener net.Listener
	server   *http.Server
	limit    limit

	mu     sync.Mutex
	images map[string]image
}

// image is what a registry knows of one.
type image struct {
	name             string
	size             int    // of its filling
	layer            string // digest
	config, manifest []byte
}

// Serve serves on a free port. All that is sent together is so many bytes a second.
func Serve(rate int) (*Registry, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting a registry: %w", err)
	}
	r := &Registry{listener: listener, limit: limit{rate: rate}, images: map[string]image{}}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = r.server.Serve(listener) }()
	return r, nil
}

// Close ends the registry.
func (r *Registry) Close() error { return r.server.Close() }

// Make makes an image with so many random bytes in it, and returns its reference.
func (r *Registry) Make(name string, size int) (string, error) {
	i := image{name: name, size: size}
	sum, length := sha256.New(), new(count)
	if err := i.write(io.MultiWriter(sum, length)); err != nil {
		return "", fmt.Errorf("making image %s: %w", name, err)
	}
	i.layer = fmt.Sprintf("sha256:%x", sum.Sum(nil))
	type m = map[string]any
	var err error
	i.config, err = json.Marshal(m{"architecture": runtime.GOARCH, "os": "linux", "config": m{}, "rootfs": m{"type": "layers", "diff_ids": []string{i.layer}}})
	if err != nil {
		return "", err
	}
	describe := func(kind, digest string, size int) m {
		return m{"mediaType": "application/vnd.oci.image." + kind, "digest": digest, "size": size}
	}
	i.manifest, err = json.Marshal(m{
		"schemaVersion": 2, "mediaType": typeManifest, "config": describe("config.v1+json", digestOf(i.config), len(i.config)),
		"layers": []m{describe("layer.v1.tar", i.layer, int(*length))},
	})
	if err != nil {
		return "", err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.images[name] = i
	return fmt.Sprintf("%s/random/%s:1", r.listener.Addr(), name), nil
}

const typeManifest = "application/vnd.oci.image.manifest.v1+json"

func digestOf(blob []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(blob)) }

// write writes the layer, the same each time.
func (i image) write(to io.Writer) error {
	w := tar.NewWriter(to)
	name := "random/" + i.name + "\n"
	if err := w.WriteHeader(&tar.Header{Name: "image-name", Mode: 0o644, Size: int64(len(name)), Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	if _, err := io.WriteString(w, name); err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Name: "filling", Mode: 0o644, Size: int64(i.size), Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	random := rand.NewChaCha8(sha256.Sum256([]byte(i.name)))
	if _, err := io.CopyN(w, random, int64(i.size)); err != nil {
		return err
	}
	return w.Close()
}

// ServeHTTP implements http.Handler: the part of the distribution specification that a pull needs.
func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	parts := strings.Split(strings.TrimPrefix(req.URL.Path, "/v2/"), "/") // random NAME manifests|blobs REFERENCE
	if len(parts) != 4 {
		w.WriteHeader(http.StatusOK)
		return
	}
	r.mu.Lock()
	i, ok := r.images[parts[1]]
	r.mu.Unlock()
	var blob []byte
	switch what, reference := parts[2], parts[3]; {
	case !ok:
	case what == "manifests":
		blob = i.manifest
		w.Header().Set("Content-Type", typeManifest)
	case reference == digestOf(i.config):
		blob = i.config
	case reference == i.layer:
		if req.Method != http.MethodHead {
			_ = i.write(r.limit.slow(req.Context(), w)) // who goes away gets no more
		}
		return
	}
	if blob == nil {
		http.NotFound(w, req)
		return
	}
	w.Header().Set("Docker-Content-Digest", digestOf(blob))
	w.Header().Set("Content-Length", fmt.Sprint(len(blob)))
	if req.Method != http.MethodHead {
		_, _ = w.Write(blob)
	}
}

// limit is how much may be sent a second, by all together.
type limit struct {
	rate int
	mu   sync.Mutex
	free time.Time // when all that was asked for until now has been sent
}

// slow is a writer under the limit.
func (l *limit) slow(ctx context.Context, to io.Writer) io.Writer {
	return writer(func(p []byte) (int, error) {
		if err := l.wait(ctx, len(p)); err != nil {
			return 0, err
		}
		return to.Write(p)
	})
}

// wait returns when so many bytes may be sent.
func (l *limit) wait(ctx context.Context, n int) error {
	l.mu.Lock()
	now := time.Now()
	if l.free.Before(now) {
		l.free = now
	}
	turn := l.free
	l.free = l.free.Add(time.Duration(n) * time.Second / time.Duration(l.rate))
	l.mu.Unlock()
	timer := time.NewTimer(time.Until(turn))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// count counts bytes.
type count int64

func (c *count) Write(p []byte) (int, error) {
	*c += count(len(p))
	return len(p), nil
}
