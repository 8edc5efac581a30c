package podfailures

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Registry serves images that cannot be pulled, or hardly. The first part of an image's name says what is wrong with it:
//
//	cut     the connection breaks off in the middle of the layer
//	slow    the layer arrives piece by piece
//	hold    nothing arrives until Release, and then all is well
//	missing there is no such image
//	arch    there are variants for other processors only
//	lies    another processor's image that does not say so (its program is in /program)
//	large   the layer is a few MiB
//	garbage the layer is not an archive
//	mount   a file is in the place of a directory that the pod mounts
//
// or it is one of [Hostile]. With any other first part all is well: good/x is an image of a few bytes.
type Registry struct {
	listener net.Listener
	server   *http.Server

	mu    sync.Mutex
	held  map[string]chan struct{}
	asked map[string]bool
	files map[string][]byte // by digest
	sent  map[string]bool   // layers, by digest
}

// NewRegistry serves on a free port of the address; with secure, by TLS with a certificate that nobody knows.
func NewRegistry(address string, secure bool) (*Registry, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return nil, fmt.Errorf("starting a registry: %w", err)
	}
	if secure {
		cert, err := unknownCertificate(net.ParseIP(address))
		if err != nil {
			return nil, fmt.Errorf("starting a registry: %w", err)
		}
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{cert}})
	}
	r := &Registry{listener: listener, held: map[string]chan struct{}{}, asked: map[string]bool{}, files: map[string][]byte{}, sent: map[string]bool{}}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = r.server.Serve(listener) }()
	return r, nil
}

// Image is the reference of an image: kind as above, any name.
func (r *Registry) Image(kind, name string) string {
	return fmt.Sprintf("%s/%s/%s:1", r.listener.Addr(), kind, name)
}

// Close ends the registry.
func (r *Registry) Close() error { return r.server.Close() }

// Release ends the waiting for the image hold/name: it does not exist.
func (r *Registry) Release(name string) {
	gate := r.gate(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-gate:
	default:
		close(gate)
	}
}

// Asked reports whether somebody has asked for hold/name.
func (r *Registry) Asked(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked[name]
}

// Fetched is the number of images of which somebody has fetched the layer.
func (r *Registry) Fetched() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sent)
}

func (r *Registry) gate(name string) chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held[name] == nil {
		r.held[name] = make(chan struct{})
	}
	return r.held[name]
}

// ServeHTTP implements http.Handler: the part of the distribution specification that a pull needs.
func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	parts := strings.Split(strings.TrimPrefix(req.URL.Path, "/v2/"), "/") // KIND NAME manifests|blobs REFERENCE
	if len(parts) != 4 {
		w.WriteHeader(http.StatusOK)
		return
	}
	kind, name, what, reference := parts[0], parts[1], parts[2], parts[3]
	if kind == "hold" {
		r.mu.Lock()
		r.asked[name] = true
		r.mu.Unlock()
		select {
		case <-r.gate(name):
		case <-req.Context().Done():
			return
		}
	}
	if kind == "missing" {
		http.NotFound(w, req)
		return
	}
	image, err := r.compose(kind, name)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	r.mu.Lock()
	blob, isBlob := r.files[reference]
	r.mu.Unlock()
	switch {
	case what == "manifests" && !isBlob:
		blob = image.manifest
	case !isBlob:
		http.NotFound(w, req)
		return
	}
	if what == "manifests" {
		w.Header().Set("Content-Type", image.mediaType)
	}
	w.Header().Set("Docker-Content-Digest", digest(blob))
	w.Header().Set("Content-Length", fmt.Sprint(len(blob)))
	if req.Method == http.MethodHead {
		return
	}
	if what == "blobs" && digest(blob) == image.layer {
		r.mu.Lock()
		r.sent[image.layer] = true
		r.mu.Unlock()
		send(req.Context(), w, kind, blob)
		return
	}
	_, _ = w.Write(blob)
}

// send sends a layer as its kind says.
func send(ctx context.Context, w http.ResponseWriter, kind string, blob []byte) {
	switch kind {
	case "cut":
		_, _ = w.Write(blob[:len(blob)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	case "slow":
		const pieces, pause = 16, 500 * time.Millisecond
		for i := range pieces {
			_, _ = w.Write(blob[i*len(blob)/pieces : (i+1)*len(blob)/pieces])
			_ = http.NewResponseController(w).Flush()
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return
			}
		}
	default:
		_, _ = w.Write(blob)
	}
}

// composed is an image as the registry has it.
type composed struct {
	manifest  []byte
	mediaType string
	layer     string // digest
}

const (
	typeManifest = "application/vnd.oci.image.manifest.v1+json"
	typeIndex    = "application/vnd.oci.image.index.v1+json"
	typeConfig   = "application/vnd.oci.image.config.v1+json"
	typeLayer    = "application/vnd.oci.image.layer.v1.tar"
)

// compose makes an image of a kind. It is the same each time.
func (r *Registry) compose(kind, name string) (composed, error) {
	layer, err := layerOf(kind, name)
	if err != nil {
		return composed{}, err
	}
	arch := runtime.GOARCH
	if kind == "arch" || kind == "lies" {
		arch = "s390x"
	}
	type m = map[string]any
	hostile := Hostile[kind]
	config, err := json.Marshal(m{"architecture": arch, "os": "linux", "config": m{"Env": hostile.env, "Volumes": hostile.volumes}, "rootfs": m{"type": "layers", "diff_ids": []string{digest(layer)}}})
	if err != nil {
		return composed{}, err
	}
	describe := func(mediaType string, blob []byte) m {
		return m{"mediaType": mediaType, "digest": digest(blob), "size": len(blob)}
	}
	manifest, err := json.Marshal(m{"schemaVersion": 2, "mediaType": typeManifest, "config": describe(typeConfig, config), "layers": []m{describe(typeLayer, layer)}})
	if err != nil {
		return composed{}, err
	}
	out := composed{manifest: manifest, mediaType: typeManifest, layer: digest(layer)}
	r.keep(layer, config, manifest)
	if kind == "arch" {
		d := describe(typeManifest, manifest)
		d["platform"] = m{"architecture": arch, "os": "linux"}
		if out.manifest, err = json.Marshal(m{"schemaVersion": 2, "mediaType": typeIndex, "manifests": []m{d}}); err != nil {
			return composed{}, err
		}
		out.mediaType = typeIndex
		r.keep(out.manifest)
	}
	return out, nil
}

func (r *Registry) keep(blobs ...[]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, b := range blobs {
		r.files[digest(b)] = b
	}
}

func digest(blob []byte) string { return fmt.Sprintf("sha256:%x", sha256.Sum256(blob)) }

// layerOf is the only layer of an image.
func layerOf(kind, name string) ([]byte, error) {
	if kind == "garbage" {
		return bytes.Repeat([]byte("this is no archive "+name+"\n"), 100), nil
	}
	type file struct {
		name string
		mode int64
		data []byte
	}
	files := []file{{"image-name", 0o644, []byte(kind + "/" + name + "\n")}}
	switch kind {
	case "mount":
		files = append(files, file{"var/lib/condor", 0o644, []byte("in the way\n")})
	case "lies":
		files = append(files, file{"program", 0o755, foreignProgram()})
	case "large", "cut", "slow":
		files = append(files, file{"filling", 0o644, make([]byte, 4<<20)})
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data)), Typeflag: tar.TypeReg}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	for _, h := range Hostile[kind].layer {
		if err := w.WriteHeader(&h); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}

// foreignProgram is the head of an ELF file for s390x (elf(5)).
func foreignProgram() []byte {
	head := make([]byte, 64)
	copy(head, "\x7fELF\x02\x02\x01") // 64 bits, big-endian
	head[17], head[19], head[23] = 2, 22, 1
	return head
}

// unknownCertificate is a self-signed certificate.
func unknownCertificate(ip net.IP) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "nobody"}, IPAddresses: []net.IP{ip},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
