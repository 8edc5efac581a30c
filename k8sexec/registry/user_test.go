package registry

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/registry/remote/auth"

	"podstarter/k8sexec/imageref"
	"podstarter/payload"
)

// layered adds an image with these layers to a registry that wants a password.
func (f *fake) layered(t *testing.T, change func(*ocispec.Manifest), layers ...string) digest.Digest {
	t.Helper()
	f.password = "secret"
	config := jsonOf(t, ocispec.Image{Config: ocispec.ImageConfig{Entrypoint: []string{"/tool"}, Env: []string{"A=1", "=2", "B", "C=x\x00", "D="}}})
	f.blobs[digest.FromBytes(config).String()] = config
	m := ocispec.Manifest{Config: ocispec.Descriptor{MediaType: ocispec.MediaTypeImageConfig, Digest: digest.FromBytes(config), Size: int64(len(config))}}
	for _, l := range layers {
		f.blobs[digest.FromString(l).String()] = []byte(l)
		m.Layers = append(m.Layers, ocispec.Descriptor{MediaType: ocispec.MediaTypeImageLayerGzip, Digest: digest.FromString(l), Size: int64(len(l))})
	}
	if change != nil {
		change(&m)
	}
	text := jsonOf(t, m)
	f.manifests["1"] = blob{ocispec.MediaTypeImageManifest, text}
	f.manifests[digest.FromBytes(text).String()] = f.manifests["1"]
	return digest.FromBytes(text)
}

// login is docker's config.json with a password for a registry.
func login(t *testing.T, name, password string) []byte {
	t.Helper()
	return jsonOf(t, map[string]any{"auths": map[string]any{name: map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte("user:" + password))}}})
}

func (f *fake) as(t *testing.T, password string) *User {
	t.Helper()
	u, err := newClient(t, "", f.host()).As(login(t, f.host(), password))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// filesIn are the contents of the files in an archive.
func filesIn(t *testing.T, archive []byte) (contents []string) {
	t.Helper()
	r := tar.NewReader(bytes.NewReader(archive))
	for {
		if _, err := r.Next(); errors.Is(err, io.EOF) {
			return contents
		} else if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		contents = append(contents, string(text))
	}
}

// TestUser: what only the user may pull is read with the user's password, and nothing of it is kept.
func TestUser(t *testing.T) {
	f := newFake(t)
	long := strings.Repeat("x", maxBytes+1)
	d := f.layered(t, nil, "one", "", long)
	u := f.as(t, "secret")
	if !u.Has(f.image()) {
		t.Error("there are no credentials for the registry")
	}
	img, err := u.Open(t.Context(), f.image())
	if err != nil {
		t.Fatal(err)
	}
	if img.Digest != d || img.Layers() != 3 || img.Bytes != int64(len(long)+3) {
		t.Errorf("%s with %d layers of %d bytes", img.Digest, img.Layers(), img.Bytes)
	}
	if diff := cmp.Diff([]string{"A=1", "D="}, img.Env); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Command{Entrypoint: []string{"/tool"}}, img.Command); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
	var out bytes.Buffer
	if err := img.Copy(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"one", "", long}, filesIn(t, out.Bytes())); diff != "" {
		t.Errorf("layers (-want +got):\n%.500s", diff)
	}
	if all, err := os.ReadDir(u.client.opt.PrivateDir); err != nil || len(all) > 0 {
		t.Errorf("%v is kept, %v", all, err)
	}
}

// TestUsersFailures: the user is told what only the user can mend, and no secret.
func TestUsersFailures(t *testing.T) {
	for name, tt := range map[string]struct {
		password string
		change   func(t *testing.T, f *fake)
		image    string
		blame    payload.Blame
		subcode  int
		words    string
	}{
		"another password": {password: "TOPSECRET", blame: payload.User, subcode: 3, words: "does not allow pulling image"},
		"no such image":    {password: "secret", change: func(_ *testing.T, f *fake) { delete(f.manifests, "1") }, blame: payload.User, subcode: 2, words: "does not exist"},
		"for others only": {password: "secret", change: func(t *testing.T, f *fake) {
			f.index(t, ocispec.MediaTypeImageIndex, ocispec.Descriptor{Digest: digest.FromString("x"), Platform: &ocispec.Platform{OS: "linux", Architecture: "s390x"}})
		}, blame: payload.User, subcode: 4},
		"encrypted": {password: "secret", change: func(t *testing.T, f *fake) {
			f.layered(t, func(m *ocispec.Manifest) { m.Layers[0].MediaType += "+encrypted" }, "x")
		}, blame: payload.User, subcode: 6, words: "cannot be unpacked here"},
		"a bad digest": {password: "secret", change: func(t *testing.T, f *fake) {
			f.layered(t, func(m *ocispec.Manifest) { m.Layers[0].Digest = "sha256:../x" }, "x")
		}, blame: payload.User, subcode: 6, words: "digest of a layer"},
		"a negative size": {password: "secret", change: func(t *testing.T, f *fake) {
			f.layered(t, func(m *ocispec.Manifest) { m.Layers[0].Size = -1 }, "x")
		}, blame: payload.User, subcode: 6, words: "size of -1 bytes"},
		"too many layers": {password: "secret", change: func(t *testing.T, f *fake) {
			f.layered(t, func(m *ocispec.Manifest) {
				for range maxLayers {
					m.Layers = append(m.Layers, m.Layers[0])
				}
			}, "x")
		}, blame: payload.User, subcode: 6, words: "513 layers"},
		"no layers": {password: "secret", change: func(t *testing.T, f *fake) { f.layered(t, nil) }, blame: payload.User, subcode: 6, words: "0 layers"},
		"a chart":   {password: "secret", change: func(_ *testing.T, f *fake) { f.manifests["1"] = blob{"text/plain", []byte("{}")} }, blame: payload.User, subcode: 2},
		"a full disk of the registry": {password: "secret", change: func(_ *testing.T, f *fake) {
			f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodHead { // whose answers have no words
					f.serve(w, r)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"errors":[{"code":"X","message":"write /data: no space left on device"}]}`)
			})
		}, blame: payload.Site, words: "out of order"},
		"an address to read from": {password: "secret", change: func(_ *testing.T, f *fake) {
			f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, "http://localhost:1/layer?X-Signature=TOPSECRET&more", http.StatusTemporaryRedirect)
			})
		}, blame: payload.Site, words: "/layer?..."},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.layered(t, nil, "one")
			if tt.change != nil {
				tt.change(t, f)
			}
			_, err := f.as(t, tt.password).Open(t.Context(), f.image())
			v := (*payload.Verdict)(nil)
			if !errors.As(err, &v) || v.Blame != tt.blame || v.Subcode != tt.subcode || !strings.Contains(v.Error(), tt.words) || strings.Contains(v.Error(), "TOPSECRET") || strings.Contains(v.Error(), KnobAuth) {
				t.Errorf("%v (%+v), want blame %s, subcode %d and %q", err, v, tt.blame, tt.subcode, tt.words)
			}
		})
	}
}

// TestLayersThatFail: what is not what the manifest says never passes as whole, and whoever does not read on is not the registry's
// fault.
func TestLayersThatFail(t *testing.T) {
	open := func(t *testing.T) (*fake, *Image) {
		t.Helper()
		f := newFake(t)
		f.layered(t, nil, "one", "another")
		img, err := f.as(t, "secret").Open(t.Context(), f.image())
		if err != nil {
			t.Fatal(err)
		}
		return f, img
	}
	for name, content := range map[string]string{"another": "two", "another, longer": "oner", "shorter": "on", "longer": "one two", "none": ""} {
		t.Run(name, func(t *testing.T) {
			f, img := open(t)
			f.blobs[digest.FromString("one").String()] = []byte(content)
			var out bytes.Buffer
			err := img.Copy(t.Context(), &out)
			if v := (*payload.Verdict)(nil); !errors.As(err, &v) || v.Blame != payload.Site {
				t.Errorf("%v, want a verdict about the site", err)
			}
		})
	}
	t.Run("nobody reads", func(t *testing.T) {
		_, img := open(t)
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		defer w.Close()
		if err := img.Copy(t.Context(), w); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("%v, want EPIPE", err)
		}
	})
	t.Run("the job is gone", func(t *testing.T) {
		_, img := open(t)
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(gone)
		if err := img.Copy(ctx, io.Discard); !errors.Is(err, gone) {
			t.Errorf("%v, want the cause", err)
		}
	})
}

// TestEntries: which entry of docker's config.json is for which registry.
func TestEntries(t *testing.T) {
	c := newClient(t, "", "localhost:5000")
	for name, tt := range map[string]struct{ config, registry, want string }{
		"its name":            {`{"auths":{"reg.example.org":{"auth":"dTox"}}}`, "reg.example.org", "1"},
		"with a scheme":       {`{"auths":{"https://reg.example.org/v2/":{"auth":"dTox"}}}`, "reg.example.org", "1"},
		"both":                {`{"auths":{"https://reg.example.org":{"auth":"dToy"},"reg.example.org":{"auth":"dTox"}}}`, "reg.example.org", "1"},
		"Docker Hub":          {`{"auths":{"https://index.docker.io/v1/":{"auth":"dTox"}}}`, "registry-1.docker.io", "1"},
		"in words":            {`{"auths":{"reg.example.org":{"username":"u","password":"1"}}}`, "reg.example.org", "1"},
		"a token":             {`{"auths":{"reg.example.org":{"identitytoken":"1"}}}`, "reg.example.org", "1"},
		"another port":        {`{"auths":{"reg.example.org:5000":{"auth":"dTox"}}}`, "reg.example.org", ""},
		"another's end":       {`{"auths":{"example.org":{"auth":"dTox"}}}`, "reg.example.org", ""},
		"a part of it":        {`{"auths":{"reg.example.org/team":{"auth":"dTox"}}}`, "reg.example.org", ""},
		"none":                {`{"auths":{}}`, "reg.example.org", ""},
		"nothing":             {`{}`, "reg.example.org", ""},
		"an entry of none":    {`{"auths":{"reg.example.org":{}}}`, "reg.example.org", ""},
		"helpers have no say": {`{"credsStore":"evil","credHelpers":{"reg.example.org":"evil"},"auths":{}}`, "reg.example.org", ""},
	} {
		t.Run(name, func(t *testing.T) {
			u, err := c.As([]byte(tt.config))
			if err != nil {
				t.Fatal(err)
			}
			got, err := u.credential(t.Context(), tt.registry)
			if secret := got.Password + got.RefreshToken; err != nil || secret != tt.want {
				t.Errorf("%q, %v, want %q", secret, err, tt.want)
			}
		})
	}
	for name, config := range map[string]string{"no JSON": "TOPSECRET", "a list": `["TOPSECRET"]`, "an entry that is none": `{"auths":{"reg.example.org":"TOPSECRET"}}`, "no base64": `{"auths":{"reg.example.org":{"auth":"TOPSECRET%"}}}`} {
		u, err := c.As([]byte(config))
		if err == nil {
			_, err = u.credential(t.Context(), "reg.example.org")
		}
		if err == nil || strings.Contains(err.Error(), "TOPSECRET") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRedirects: layers may come from elsewhere, which gets no credentials; but not from where only this node can go.
func TestRedirects(t *testing.T) {
	heard := make(chan string, 10)
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heard <- r.Header.Get("Authorization")
		_, _ = io.WriteString(w, "one")
	}))
	t.Cleanup(store.Close)
	elsewhere := strings.Replace(store.URL, "127.0.0.1", "localhost", 1)
	for name, tt := range map[string]struct {
		to   string
		want string // the end
	}{
		"this pod":   {elsewhere + "/layer", "which is this node's own"},
		"metadata":   {"http://169.254.169.254/latest", "which is this node's own"},
		"round":      {"", "with more than 5 other addresses"},
		"by no HTTP": {"file:///etc/passwd", "unsupported protocol scheme"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t)
			f.layered(t, nil, "one")
			img, err := f.as(t, "secret").Open(t.Context(), f.image())
			if err != nil {
				t.Fatal(err)
			}
			f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				to := tt.to
				if to == "" {
					to = r.URL.Path
				}
				http.Redirect(w, r, to, http.StatusTemporaryRedirect)
			})
			if err := img.Copy(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
	t.Run("elsewhere", func(t *testing.T) {
		f := newFake(t)
		f.layered(t, nil, "one")
		u := f.as(t, "secret")
		img, err := u.Open(t.Context(), f.image())
		if err != nil {
			t.Fatal(err)
		}
		f.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere, http.StatusTemporaryRedirect)
		})
		u.files.Client.CheckRedirect = nil // the test has no other address
		if err := img.Copy(t.Context(), io.Discard); err != nil {
			t.Fatal(err)
		}
		if got := <-heard; got != "" {
			t.Errorf("another host was sent %q", got)
		}
	})
}

// TestRedirected: from TLS nobody is sent to where everybody can read along.
func TestRedirected(t *testing.T) {
	get := func(url string) *http.Request {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, tt := range []struct {
		from, to string
		good     bool
	}{
		{"https://reg.example.org/a", "https://store.example.org/b", true},
		{"https://reg.example.org/a", "http://store.example.org/b", false},
		{"http://127.0.0.1:5000/a", "http://127.0.0.1:5000/b", true},
		{"http://127.0.0.1:5000/a", "http://127.0.0.1:5001/b", false},
		{"https://reg.example.org/a", "https://localhost./b", false},
		{"https://reg.example.org/a", "https://0.0.0.0/b", false},
		{"https://reg.example.org/a", "https://[fe80::1]/b", false},
		{"https://reg.example.org/a", "https://169.254.169.254/b", false},
	} {
		if err := redirected(get(tt.to), []*http.Request{get(tt.from)}); (err == nil) != tt.good {
			t.Errorf("from %s to %s: %v", tt.from, tt.to, err)
		}
	}
}

// FuzzAs: no ad of a submit side panics, and errors do not tell what is in it.
func FuzzAs(f *testing.F) {
	f.Add(`{"auths":{"reg.example.org":{"auth":"dTox"}}}`)
	f.Add(`{"auths":{"https://index.docker.io/v1/":{"identitytoken":"x"}}}`)
	f.Fuzz(func(t *testing.T, config string) {
		u, err := New(Options{}).As([]byte(config))
		if err != nil {
			return
		}
		img := imageref.Image{Repository: "reg.example.org/x", Tag: "1"}
		if got, err := u.credential(t.Context(), "reg.example.org"); u.Has(img) != (err != nil || got != auth.EmptyCredential) {
			t.Error("Has disagrees")
		}
	})
}

// FuzzDecodeEnv: all variables can be a process's.
func FuzzDecodeEnv(f *testing.F) {
	f.Add([]byte(`{"config":{"Env":["A=1","=","B"]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		env, err := decodeEnv(text)
		if err == nil && json.Valid(text) && len(env) > maxWords {
			t.Errorf("%d variables", len(env))
		}
		for _, e := range env {
			if strings.IndexByte(e, '=') < 1 || strings.Contains(e, "\x00") {
				t.Errorf("%q", e)
			}
		}
	})
}

// TestMeasure: sizes that no layer has are refused, so that their sum means something.
func TestMeasure(t *testing.T) {
	for name, tt := range map[string]struct {
		sizes []int64
		good  bool
	}{
		"two":          {sizes: []int64{1, 2}, good: true},
		"none":         {},
		"below zero":   {sizes: []int64{1, -1}},
		"the largest":  {sizes: []int64{1 << 50}, good: true},
		"beyond":       {sizes: []int64{1<<50 + 1}},
		"a great many": {sizes: make([]int64, maxLayers+1)},
		"all of them":  {sizes: make([]int64, maxLayers), good: true},
	} {
		i := &Image{}
		for _, size := range tt.sizes {
			i.layers = append(i.layers, ocispec.Descriptor{Digest: digest.FromString("layer"), Size: size})
		}
		if err := i.measure(); (err == nil) != tt.good || err != nil && !errors.As(err, new(unusable)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
