//go:build pool

package e2e

import (
	"archive/tar"
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// A linkImage is busybox with symbolic links and programs.
type linkImage struct {
	links    map[string]string // from a path to a target
	programs map[string]string // text by path
	volumes  []string          // which the runtime mounts, with what the image has there
}

// linkRegistry serves images that it makes on request. What the pool's registry
// already has comes from there.
type linkRegistry struct {
	server   *http.Server
	address  string
	upstream string // the pool's registry
	base     ociManifest

	mu    sync.Mutex
	blobs map[string][]byte // by digest, and manifests by name too
	// asked is closed when somebody wants the layer of an image, gate when it may
	// have it.
	asked, gate map[string]chan struct{}
}

type ociDescriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Size      int    `json:"size"`
}

type ociManifest struct {
	SchemaVersion int             `json:"schemaVersion"`
	MediaType     string          `json:"mediaType"`
	Config        ociDescriptor   `json:"config"`
	Layers        []ociDescriptor `json:"layers"`
}

// startLinkRegistry serves until the test ends.
func startLinkRegistry(t *testing.T) *linkRegistry {
	t.Helper()
	reference := pool.Image("busybox")
	address, rest, _ := strings.Cut(reference, "/")
	name, tag, _ := strings.Cut(rest, ":")
	r := &linkRegistry{upstream: "http://" + address + "/v2/" + name, blobs: map[string][]byte{}, asked: map[string]chan struct{}{}, gate: map[string]chan struct{}{}}
	text, err := r.get(t, "/manifests/"+tag)
	if err == nil {
		err = json.Unmarshal(text, &r.base)
	}
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r.address = listener.Addr().String()
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}
	go func() { _ = r.server.Serve(listener) }()
	t.Cleanup(func() { _ = r.server.Close() })
	return r
}

func (r *linkRegistry) get(t *testing.T, rest string) ([]byte, error) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.upstream+rest, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", request.URL, answer.Status)
	}
	return io.ReadAll(answer.Body)
}

// add makes an image under a name, and returns its reference.
func (r *linkRegistry) add(t *testing.T, name string, image linkImage) string {
	t.Helper()
	layer, err := image.layer(name)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	layers := slices.Clone(r.base.Layers)
	for _, l := range layers {
		all = append(all, l.Digest) // layers of this pool are not compressed
	}
	mine := r.keep(r.base.Layers[0].MediaType, layer)
	type m = map[string]any
	volumes := m{}
	for _, at := range image.volumes {
		volumes[at] = m{}
	}
	config, err := json.Marshal(m{"architecture": runtime.GOARCH, "os": "linux", "config": m{"Volumes": volumes}, "rootfs": m{"type": "layers", "diff_ids": append(all, mine.Digest)}})
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := json.Marshal(ociManifest{SchemaVersion: 2, MediaType: r.base.MediaType,
		Config: r.keep(r.base.Config.MediaType, config), Layers: append(layers, mine)})
	if err != nil {
		t.Fatal(err)
	}
	r.keep(r.base.MediaType, manifest)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blobs[name] = manifest
	r.asked[mine.Digest], r.gate[mine.Digest] = make(chan struct{}), make(chan struct{})
	r.asked[name], r.gate[name] = r.asked[mine.Digest], r.gate[mine.Digest]
	return r.address + "/" + name + ":1"
}

// release lets a pull of an image continue. The kubelet may pull one at a time.
func (r *linkRegistry) release(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-r.gate[name]:
	default:
		close(r.gate[name])
	}
}

func (r *linkRegistry) keep(mediaType string, blob []byte) ociDescriptor {
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(blob))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blobs[digest] = blob
	return ociDescriptor{MediaType: mediaType, Digest: digest, Size: len(blob)}
}

// ServeHTTP implements http.Handler: what a pull needs of /v2/NAME/manifests/REF
// and /v2/NAME/blobs/DIGEST.
func (r *linkRegistry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	parts := strings.Split(strings.TrimPrefix(req.URL.Path, "/v2/"), "/")
	if len(parts) != 3 {
		return
	}
	key := parts[2]
	if parts[1] == "manifests" && !strings.HasPrefix(key, "sha256:") {
		key = parts[0]
	}
	r.mu.Lock()
	blob, ok := r.blobs[key]
	asked, gate := r.asked[key], r.gate[key]
	r.mu.Unlock()
	if !ok {
		http.Redirect(w, req, r.upstream+"/"+parts[1]+"/"+key, http.StatusTemporaryRedirect)
		return
	}
	if parts[1] == "manifests" {
		w.Header().Set("Content-Type", r.base.MediaType)
		w.Header().Set("Docker-Content-Digest", fmt.Sprintf("sha256:%x", sha256.Sum256(blob)))
	} else if gate != nil {
		r.mu.Lock()
		select {
		case <-asked:
		default:
			close(asked)
		}
		r.mu.Unlock()
		select {
		case <-gate:
		case <-req.Context().Done():
			return
		}
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(blob)))
	if req.Method != http.MethodHead {
		_, _ = w.Write(blob)
	}
}

// layer is the image's own, as an archive.
func (i linkImage) layer(name string) ([]byte, error) {
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	add := func(header tar.Header, data string) error {
		header.Size = int64(len(data))
		if err := w.WriteHeader(&header); err != nil {
			return err
		}
		_, err := io.WriteString(w, data)
		return err
	}
	// The node would not ask for a layer that it already has.
	err := add(tar.Header{Name: "image-name", Typeflag: tar.TypeReg, Mode: 0o644}, name+" "+rand.Text()+"\n")
	for at, target := range i.links {
		if err == nil {
			err = add(tar.Header{Name: strings.TrimPrefix(at, "/"), Typeflag: tar.TypeSymlink, Linkname: target, Mode: 0o777}, "")
		}
	}
	made := map[string]bool{}
	for at, text := range i.programs {
		dirs := []string{}
		for dir := path.Dir(at); dir != "/"; dir = path.Dir(dir) {
			dirs = append([]string{dir}, dirs...)
		}
		for _, dir := range dirs {
			if err == nil && !made[dir] {
				made[dir] = true
				err = add(tar.Header{Name: strings.TrimPrefix(dir, "/") + "/", Typeflag: tar.TypeDir, Mode: 0o755}, "")
			}
		}
		if err == nil {
			err = add(tar.Header{Name: strings.TrimPrefix(at, "/"), Typeflag: tar.TypeReg, Mode: 0o755}, text)
		}
	}
	if err != nil {
		return nil, err
	}
	err = w.Close()
	return out.Bytes(), err
}
