package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"podstarter/k8sexec/imageref"
	"podstarter/payload"
)

// blob is something that a registry has.
type blob struct {
	kind string
	text []byte
}

// fake is a registry that says whatever a test wants. It is plain HTTP on loopback.
type fake struct {
	*httptest.Server
	manifests map[string]blob // by tag or digest
	blobs     map[string][]byte
	asked     []string
	password  string
	lies      bool // about digests
}

func newFake(t *testing.T) *fake {
	t.Helper()
	f := &fake{manifests: map[string]blob{}, blobs: map[string][]byte{}}
	f.Server = httptest.NewServer(http.HandlerFunc(f.serve))
	t.Cleanup(f.Close)
	return f
}

func (f *fake) serve(w http.ResponseWriter, r *http.Request) {
	f.asked = append(f.asked, r.Method+" "+strings.TrimPrefix(r.URL.Path, "/v2/some/image/"))
	if _, password, _ := r.BasicAuth(); password != f.password {
		w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	kind, ref := "", r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	text, ok := f.blobs[ref]
	if strings.Contains(r.URL.Path, "/manifests/") {
		var m blob
		m, ok = f.manifests[ref]
		kind, text = m.kind, m.text
	}
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if kind != "" {
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Docker-Content-Digest", digest.FromBytes(text).String())
		if f.lies {
			w.Header().Set("Docker-Content-Digest", ref)
		}
	}
	w.Header().Set("Content-Length", fmt.Sprint(len(text)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(text)
	}
}

func (f *fake) host() string { return strings.TrimPrefix(f.URL, "http://") }

func (f *fake) image() imageref.Image {
	return imageref.Image{Repository: f.host() + "/some/image", Tag: "1"}
}

func jsonOf(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// put adds an image with this configuration, and gives the digest of its manifest.
func (f *fake) put(t *testing.T, kind string, config []byte) digest.Digest {
	t.Helper()
	f.blobs[digest.FromBytes(config).String()] = config
	m := jsonOf(t, ocispec.Manifest{Config: ocispec.Descriptor{MediaType: ocispec.MediaTypeImageConfig, Digest: digest.FromBytes(config), Size: int64(len(config))}})
	d := digest.FromBytes(m)
	f.manifests[d.String()] = blob{kind, m}
	f.manifests["1"] = blob{kind, m}
	return d
}

// index adds an index, and gives its digest.
func (f *fake) index(t *testing.T, kind string, manifests ...ocispec.Descriptor) digest.Digest {
	t.Helper()
	text := jsonOf(t, ocispec.Index{Manifests: manifests})
	f.manifests[digest.FromBytes(text).String()] = blob{kind, text}
	f.manifests["1"] = blob{kind, text}
	return digest.FromBytes(text)
}

func newClient(t *testing.T, auth string, plain ...string) *Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "private")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return New(Options{PrivateDir: path, Auth: auth, Plain: plain, Architecture: "amd64", Log: slog.New(slog.DiscardHandler)})
}

func config(entry, cmd []string) ocispec.Image {
	return ocispec.Image{Config: ocispec.ImageConfig{Entrypoint: entry, Cmd: cmd}}
}

// TestCommand: what images have, and what a registry may say instead.
func TestCommand(t *testing.T) {
	want := Command{Entrypoint: []string{"/bin/sh", "-c", "exec tool"}, Cmd: []string{"--help"}}
	good := func(t *testing.T) []byte { return jsonOf(t, config(want.Entrypoint, want.Cmd)) }
	platform := func(d digest.Digest, os, arch string) ocispec.Descriptor {
		return ocispec.Descriptor{Digest: d, Platform: &ocispec.Platform{OS: os, Architecture: arch}}
	}
	tests := map[string]struct {
		prepare func(t *testing.T, f *fake) digest.Digest
		want    Command
		wantErr string
	}{
		"OCI":    {prepare: func(t *testing.T, f *fake) digest.Digest { return f.put(t, ocispec.MediaTypeImageManifest, good(t)) }, want: want},
		"docker": {prepare: func(t *testing.T, f *fake) digest.Digest { return f.put(t, dockerManifest, good(t)) }, want: want},
		"no command": {prepare: func(t *testing.T, f *fake) digest.Digest {
			return f.put(t, dockerManifest, []byte(`{"config":{"Entrypoint":null}}`))
		}},
		"index": {prepare: func(t *testing.T, f *fake) digest.Digest {
			d := f.put(t, dockerManifest, good(t))
			return f.index(t, dockerIndex, platform("sha256:1", "windows", "amd64"), platform("sha256:1", "linux", "arm64"), platform(d, "linux", "amd64"), platform("sha256:1", "linux", "amd64"))
		}, want: want},
		"index of others": {prepare: func(t *testing.T, f *fake) digest.Digest {
			return f.index(t, ocispec.MediaTypeImageIndex, platform(digest.FromString("x"), "linux", "s390x"), platform(digest.FromString("y"), "unknown", "unknown"))
		}, wantErr: "none for linux/amd64"},
		"index that does not say": {prepare: func(t *testing.T, f *fake) digest.Digest {
			d := f.put(t, dockerManifest, good(t))
			return f.index(t, ocispec.MediaTypeImageIndex, platform(digest.FromString("x"), "linux", "s390x"), ocispec.Descriptor{Digest: d})
		}, want: want},
		"index with an older processor": {prepare: func(t *testing.T, f *fake) digest.Digest {
			d := f.put(t, dockerManifest, good(t))
			return f.index(t, dockerIndex, ocispec.Descriptor{Digest: "sha256:1"}, platform("sha256:1", "linux", "arm"), platform(d, "linux", "386"))
		}, want: want},
		"index with both": {prepare: func(t *testing.T, f *fake) digest.Digest {
			d := f.put(t, dockerManifest, good(t))
			return f.index(t, dockerIndex, platform("sha256:1", "linux", "386"), platform(d, "linux", "x86_64"), platform("sha256:1", "linux", "amd64"))
		}, want: want},
		"no index, for another processor, as it says": {prepare: func(t *testing.T, f *fake) digest.Digest {
			other := config(want.Entrypoint, want.Cmd)
			other.OS, other.Architecture = "linux", "s390x"
			return f.put(t, dockerManifest, jsonOf(t, other))
		}, want: want},
		"index with capitals": {prepare: func(t *testing.T, f *fake) digest.Digest {
			return f.index(t, dockerIndex, platform(f.put(t, dockerManifest, good(t)), "Linux", "AMD64"))
		}, want: want},
		"index with a bad digest": {prepare: func(t *testing.T, f *fake) digest.Digest {
			return f.index(t, dockerIndex, platform("sha256:../../x", "linux", "amd64"))
		}, wantErr: "invalid checksum digest"},
		"index in an index": {prepare: func(t *testing.T, f *fake) digest.Digest {
			return f.index(t, dockerIndex, platform(f.index(t, dockerIndex), "linux", "amd64"))
		}, wantErr: "and no image"},
		"no image": {prepare: func(t *testing.T, f *fake) digest.Digest { return f.put(t, "text/html", good(t)) }, wantErr: `something of type "text/html"`},
		"another manifest under the digest": {prepare: func(t *testing.T, f *fake) digest.Digest {
			f.put(t, dockerManifest, good(t))
			d := digest.FromString("asked for")
			f.manifests[d.String()] = f.manifests["1"]
			return d
		}, wantErr: "mismatch"},
		"another manifest under the digest, and a lie": {prepare: func(t *testing.T, f *fake) digest.Digest {
			f.put(t, dockerManifest, good(t))
			d := digest.FromString("asked for")
			f.manifests[d.String()], f.lies = f.manifests["1"], true
			return d
		}, wantErr: "mismatch"},
		"another configuration under the digest": {prepare: func(t *testing.T, f *fake) digest.Digest {
			d, text := f.put(t, dockerManifest, good(t)), good(t)
			f.blobs[digest.FromBytes(text).String()] = []byte(strings.Replace(string(text), "tool", "evil", 1))
			return d
		}, wantErr: "mismatch"},
		"a manifest that is none": {prepare: func(_ *testing.T, f *fake) digest.Digest {
			text := []byte("[]")
			f.manifests[digest.FromBytes(text).String()] = blob{dockerManifest, text}
			return digest.FromBytes(text)
		}, wantErr: "decoding the image's manifest"},
		"a manifest without a configuration": {prepare: func(_ *testing.T, f *fake) digest.Digest {
			text := []byte("{}")
			f.manifests[digest.FromBytes(text).String()] = blob{dockerManifest, text}
			return digest.FromBytes(text)
		}, wantErr: "reading the image's configuration"},
		"a manifest that is too long": {prepare: func(_ *testing.T, f *fake) digest.Digest {
			text := []byte(`{"x":"` + strings.Repeat("x", maxBytes) + `"}`)
			f.manifests[digest.FromBytes(text).String()] = blob{dockerManifest, text}
			return digest.FromBytes(text)
		}, wantErr: "4194304 are allowed"},
		"a configuration that is too long": {prepare: func(t *testing.T, f *fake) digest.Digest {
			return f.put(t, dockerManifest, []byte(`{"x":"`+strings.Repeat("x", maxBytes)+`"}`))
		}, wantErr: "4194304 are allowed"},
		"no JSON": {prepare: func(t *testing.T, f *fake) digest.Digest { return f.put(t, dockerManifest, []byte("<html>")) }, wantErr: "decoding the image's configuration"},
		"a zero byte": {prepare: func(t *testing.T, f *fake) digest.Digest {
			return f.put(t, dockerManifest, jsonOf(t, config([]string{"a\x00b"}, nil)))
		}, wantErr: "zero byte"},
		"many words": {prepare: func(t *testing.T, f *fake) digest.Digest {
			return f.put(t, dockerManifest, jsonOf(t, config(nil, make([]string, maxWords+1))))
		}, wantErr: "1025 words"},
		"a long word": {prepare: func(t *testing.T, f *fake) digest.Digest {
			return f.put(t, dockerManifest, jsonOf(t, config([]string{strings.Repeat("x", maxWordBytes+1)}, nil)))
		}, wantErr: "131073 bytes"},
		"unknown":       {prepare: func(*testing.T, *fake) digest.Digest { return digest.FromString("none") }, wantErr: "not found"},
		"a bad digest":  {prepare: func(*testing.T, *fake) digest.Digest { return "sha256:x/../y" }, wantErr: "understanding the digest"},
		"no permission": {prepare: func(_ *testing.T, f *fake) digest.Digest { f.password = "secret"; return digest.FromString("x") }, wantErr: "POD_STARTER_REGISTRY_AUTH"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			c := newClient(t, "", f.host())
			d := tt.prepare(t, f)
			got, err := c.Command(t.Context(), f.image(), d)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("%+v, %v; want the error %q", got, err, tt.wantErr)
				}
				return
			}
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Fatalf("%v (-want +got):\n%s", err, diff)
			}
			before := len(f.asked)
			again, err := c.Command(t.Context(), f.image(), d)
			if diff := cmp.Diff(got, again); err != nil || diff != "" || len(f.asked) != before {
				t.Errorf("the second time: %v, asked for %q (-want +got):\n%s", err, f.asked[before:], diff)
			}
		})
	}
}

// TestResolve: a tag's digest by one HEAD request.
func TestResolve(t *testing.T) {
	f := newFake(t)
	c := newClient(t, "", f.host())
	d := f.put(t, dockerManifest, []byte("{}"))
	got, err := c.Resolve(t.Context(), f.image())
	if err != nil || got != d {
		t.Errorf("%s, %v; want %s", got, err, d)
	}
	if diff := cmp.Diff([]string{"HEAD manifests/1"}, f.asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	fixed := imageref.Image{Repository: "registry.invalid/x", Digest: d}
	if got, err := c.Resolve(t.Context(), fixed); err != nil || got != d {
		t.Errorf("an image with a digest: %s, %v; want %s and no request", got, err, d)
	}
}

// TestCredentials: the site's file is for the registry that it names, and is read anew each time.
func TestCredentials(t *testing.T) {
	f := newFake(t)
	f.password = "secret"
	f.put(t, dockerManifest, []byte("{}"))
	path := filepath.Join(t.TempDir(), "config.json")
	c := newClient(t, path, f.host())
	write := func(host, userPassword string) {
		t.Helper()
		auths := map[string]any{"auths": map[string]any{host: map[string]string{"auth": userPassword}}}
		if err := os.WriteFile(path, jsonOf(t, auths), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	host := f.host()
	for name, text := range map[string]string{"no file": "", "no JSON": "x", "a token alone": `{"auths":{"` + host + `":{"auth":"Z2hwX1RPUFNFQ1JFVA=="}}}`} {
		if text != "" {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Resolve(t.Context(), f.image()); err == nil || strings.Contains(err.Error(), "TOPSECRET") || !strings.Contains(err.Error(), "look at the credentials") {
			t.Errorf("%s: %v; want that nobody asked with credentials, and none of them", name, err)
		}
	}
	write("other.example.org", "dTpzZWNyZXQ=") // u:secret
	if _, err := c.Resolve(t.Context(), f.image()); err == nil || !strings.Contains(err.Error(), "look at the credentials for "+host+" in "+path) {
		t.Errorf("credentials of another registry: %v", err)
	}
	write(host, "dTpzZWNyZXQ=")
	if _, err := c.Resolve(t.Context(), f.image()); err != nil {
		t.Errorf("with credentials: %v", err)
	}
}

// TestUnreached: a registry that was not reached is left alone for some time.
func TestUnreached(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	host := l.Addr().String()
	_ = l.Close()
	c := newClient(t, "", host)
	img := imageref.Image{Repository: host + "/some/image", Tag: "1"}
	if _, err := c.Resolve(t.Context(), img); err == nil || !strings.Contains(err.Error(), "does not reach the registry") {
		t.Fatalf("%v; want that it is not reached", err)
	}
	if _, err := c.Resolve(t.Context(), img); err == nil || !strings.Contains(err.Error(), "does not try again") {
		t.Errorf("at once: %v; want that it is not tried", err)
	}
	c.now = func() time.Time { return time.Now().Add(unreachedTime + time.Second) }
	if _, err := c.Resolve(t.Context(), img); err == nil || !strings.Contains(err.Error(), "does not reach the registry") {
		t.Errorf("later: %v; want that it is tried", err)
	}
}

// TestEnded: the end of the job is no failure of the registry.
func TestEnded(t *testing.T) {
	f := newFake(t)
	c := newClient(t, "", f.host())
	ended := fmt.Errorf("removed")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ended)
	if _, err := c.Resolve(ctx, f.image()); err != ended { //nolint:errorlint // it must be the cause itself
		t.Errorf("%v, want the cause", err)
	}
	if err := c.unreached(strings.TrimPrefix(f.URL, "http://")); err != nil {
		t.Errorf("the registry is said to be unreached: %v", err)
	}
}

// TestRoom: old answers go.
func TestRoom(t *testing.T) {
	c := newClient(t, "")
	c.keep(digest.FromString("first"), Command{})
	for i := range maxKept + 20 {
		c.noteUnreached(fmt.Sprint(i))
	}
	if _, ok := c.kept(digest.FromString("first")); !ok {
		t.Error("registries that were not reached have taken the room of a command")
	}
	for i := range maxKept + 20 {
		c.keep(digest.FromString(fmt.Sprint(i)), Command{})
	}
	c.keep(digest.FromString("long"), Command{Cmd: []string{strings.Repeat("<", maxKeptFile)}})
	all, err := os.ReadDir(filepath.Join(c.opt.PrivateDir, keptDir))
	if err != nil || len(all) != 2*maxKept {
		t.Errorf("%d files are kept, %v; want %d", len(all), err, 2*maxKept)
	}
	if _, ok := c.kept(digest.FromString("long")); ok {
		t.Error("a long command is kept")
	}
	if _, ok := c.kept(digest.FromString(fmt.Sprint(maxKept + 19))); !ok {
		t.Error("the latest is not kept")
	}
}

// TestPlain: a registry on a loopback address is asked only if the site says so: in a pod, a job may
// answer there. Those that are asked may answer later.
func TestPlain(t *testing.T) {
	f := newFake(t)
	d := f.put(t, dockerManifest, []byte("{}"))
	c := newClient(t, "", "other:5000")
	_, err := c.Resolve(t.Context(), f.image())
	_, commandErr := c.Command(t.Context(), f.image(), d)
	for _, err := range []error{err, commandErr} {
		if err == nil || !strings.Contains(err.Error(), KnobPlain) || errors.Is(err, payload.ErrPassing) {
			t.Errorf("%v; want %s in it, and that it does not pass", err, KnobPlain)
		}
	}
	if len(f.asked) > 0 {
		t.Errorf("asked for %q", f.asked)
	}
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	t.Cleanup(busy.Close)
	host := strings.TrimPrefix(busy.URL, "http://")
	c = newClient(t, "", host)
	for range 2 { // which is no registry that was not reached
		if _, err := c.Resolve(t.Context(), imageref.Image{Repository: host + "/x", Tag: "1"}); !errors.Is(err, payload.ErrPassing) || !strings.Contains(err.Error(), "503") {
			t.Errorf("%v; want that it passes", err)
		}
	}
}

// TestLoopback: which registries each machine has for itself.
func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "localhost:5000": true, "127.0.0.1:5000": true, "127.9.9.9": true, "[::1]:5000": true, "localhost.": true, "localhost.:5000": true, "0.0.0.0": true, "[::]:80": true, "[::1]": true,
		"localhost.example.org": false, "10.0.0.1:5000": false, "registry.example.org": false, "127.0.0.1.example.org:80": false,
	} {
		if got := isLoopback(host); got != want {
			t.Errorf("%s: %t, want %t", host, got, want)
		}
	}
}

func FuzzDecodeCommand(f *testing.F) {
	f.Add([]byte(`{"config":{"Entrypoint":["/a","b"],"Cmd":["c"]}}`))
	f.Add([]byte(`{"config":{"Entrypoint":"/a"}}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := decodeCommand(text)
		if err != nil {
			return
		}
		bytes := 0
		for _, w := range append(append([]string(nil), c.Entrypoint...), c.Cmd...) {
			bytes += len(w)
			if strings.Contains(w, "\x00") {
				t.Errorf("%q has a zero byte", w)
			}
		}
		if n := len(c.Entrypoint) + len(c.Cmd); n > maxWords || bytes > maxWordBytes {
			t.Errorf("%d words, %d bytes", n, bytes)
		}
	})
}
