package userimage

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/k8sexec/registry"
	"podstarter/payload"
)

// server is a registry with one image, which wants a password for whatever is below /v2/private/.
func server(t *testing.T, password string, layer int) string {
	t.Helper()
	config := []byte(`{"config":{"Env":["A=1"]}}`)
	manifest := fmt.Appendf(nil, `{"config":{"digest":%q,"size":%d},"layers":[{"digest":%q,"size":%d}]}`, digest.FromBytes(config), len(config), digest.FromString("layer"), layer)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, got, _ := r.BasicAuth(); strings.HasPrefix(r.URL.Path, "/v2/private/") && got != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		text := config
		if strings.Contains(r.URL.Path, "/manifests/") {
			text = manifest
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			w.Header().Set("Docker-Content-Digest", digest.FromBytes(manifest).String())
		}
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		if r.Method != http.MethodHead {
			_, _ = w.Write(text)
		}
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// TestFind: only what the kubelet cannot pull is opened with the user's credentials. Nothing that is logged or said has the password.
func TestFind(t *testing.T) {
	const password = "TOPSECRET"
	good := func(host string) (*classads.Ad, error) {
		return classads.ParseJSON(fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, host, base64.StdEncoding.EncodeToString([]byte("user:"+password))))
	}
	gone := errors.New("gone")
	for name, tt := range map[string]struct {
		image string // below the registry
		fetch func(host string) (*classads.Ad, error)
		deaf  bool // nobody asks registries without credentials
		layer int
		want  string // "opened", "left", "35/3", or an error
		words string
	}{
		"private":                               {image: "private/x:1", fetch: good, want: "opened"},
		"private, and registries are not asked": {image: "private/x:1", fetch: good, deaf: true, want: "opened"},
		"public":                                {image: "public/x:1", fetch: good, want: "left", words: "not needed"},
		"public, and registries are not asked":  {image: "public/x:1", fetch: good, deaf: true, want: "opened"},
		"credentials for another":               {image: "private/x:1", fetch: func(string) (*classads.Ad, error) { return good("other.example.org") }, want: "left", words: "sends no credentials"},
		"a wrong password": {image: "private/x:1", fetch: func(host string) (*classads.Ad, error) {
			return classads.ParseJSON(fmt.Sprintf(`{"auths":{%q:{"username":"u","password":"another"}}}`, host))
		}, want: "verdict 3", words: "does not allow"},
		"none at the access point": {image: "private/x:1", fetch: func(string) (*classads.Ad, error) { return nil, &shadow.Refusal{Text: "run docker login"} }, want: "35/0", words: "run docker login"},
		"no encryption":            {image: "private/x:1", fetch: func(string) (*classads.Ad, error) { return nil, fmt.Errorf("call: %w", shadow.ErrNotEncrypted) }, want: "left", words: "not encrypted"},
		"an old shadow":            {image: "private/x:1", fetch: func(string) (*classads.Ad, error) { return nil, shadow.ErrUnsupported }, want: "left", words: "too old"},
		"a lost shadow":            {image: "private/x:1", fetch: func(string) (*classads.Ad, error) { return nil, gone }, want: "gone"},
		"no credentials":           {image: "private/x:1", fetch: func(string) (*classads.Ad, error) { return classads.ParseJSON(`{"auths":"TOPSECRET"}`) }, want: "35/0", words: "docker's config.json"},
		"too large":                {image: "private/x:1", fetch: good, layer: 1000, want: "35/25", words: "too large"},
		"private, by digest":       {image: "private/x@" + digest.FromString("asked for").String(), fetch: good, want: "verdict 0", words: ""}, // the registry has another: it was asked
		"a name that is none":      {image: "Private/x:1", fetch: good, want: "left"},
	} {
		t.Run(name, func(t *testing.T) {
			host := server(t, password, max(tt.layer, 5))
			var log bytes.Buffer
			f := Finder{
				Registries: registry.New(registry.Options{PrivateDir: t.TempDir(), Plain: []string{host}, Architecture: "amd64", Log: slog.New(slog.DiscardHandler)}),
				Ask:        !tt.deaf, MaxBytes: 999, Log: slog.New(slog.NewTextHandler(&log, nil)),
				Fetch: func(context.Context) (*classads.Ad, error) { return tt.fetch(host) },
			}
			found, err := f.Find(t.Context(), host+"/"+tt.image)
			if got := endOf(found, err); got != tt.want {
				t.Errorf("%s, want %s: %v", got, tt.want, err)
			}
			said := log.String() + fmt.Sprint(err)
			if !strings.Contains(said, tt.words) || strings.Contains(said, password) || strings.Contains(said, base64.StdEncoding.EncodeToString([]byte("user:"+password))) {
				t.Errorf("said %q, want %q in it and no password", said, tt.words)
			}
		})
	}
}

// endOf is what came of it.
func endOf(found *registry.Image, err error) string {
	var f *job.Failure
	var v *payload.Verdict
	switch {
	case errors.As(err, &f):
		return fmt.Sprintf("%d/%d", f.Code, f.Subcode)
	case errors.As(err, &v):
		return fmt.Sprintf("verdict %d", v.Subcode)
	case err != nil:
		return err.Error()
	case found == nil:
		return "left"
	}
	if data, err := json.Marshal(found.Env); err != nil || string(data) != `["A=1"]` {
		return "opened with the variables " + string(data)
	}
	return "opened"
}
