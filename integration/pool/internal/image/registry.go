package image

import (
	"bytes"
	"context"
	"fmt"

	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Store is the directory that the registry serves blobs from: one file, or a link to one, per digest.
type Store struct {
	Dir string
}

// Repo is the repository prefix of all images here.
const Repo = "podstarter/"

func (s Store) path(h v1.Hash) string { return filepath.Join(s.Dir, h.Algorithm, h.Hex) }

// Add makes the blobs of an image available. Layers are linked, not copied.
func (s Store) Add(p Packed) error {
	if err := os.MkdirAll(filepath.Join(s.Dir, p.ConfigDigest.Algorithm), 0o755); err != nil {
		return fmt.Errorf("adding the image %s to the registry: %w", p.Name, err)
	}
	if err := os.WriteFile(s.path(p.ConfigDigest), p.ConfigBlob, 0o644); err != nil {
		return fmt.Errorf("adding the image %s to the registry: %w", p.Name, err)
	}
	for _, l := range p.Layers {
		if target, err := os.Readlink(s.path(l.Digest)); err == nil && target == l.Path {
			continue
		}
		// A link of an earlier pool may point to a file that is gone.
		_ = os.Remove(s.path(l.Digest))
		if err := os.Symlink(l.Path, s.path(l.Digest)); err != nil {
			return fmt.Errorf("adding the image %s to the registry: %w", p.Name, err)
		}
	}
	return nil
}

// Push tells the registry at addr about the image, under the tag. The registry keeps manifests in memory only, so this is
// done again whenever it was restarted.
func Push(ctx context.Context, addr string, p Packed, tag string) error {
	url := fmt.Sprintf("http://%s/v2/%s%s/manifests/%s", addr, Repo, p.Name, tag)
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, url, bytes.NewReader(p.Manifest))
	if err != nil {
		return fmt.Errorf("pushing the image %s: %w", p.Name, err)
	}
	req.Header.Set("Content-Type", string(p.ManifestFormat))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("pushing the image %s: %w", p.Name, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated {
		return fmt.Errorf("pushing the image %s: the registry answers %s", p.Name, resp.Status)
	}
	return nil
}

// Private is the address on which the registry wants a password for everything: a registry with the same images that are not for
// everybody. Docker, containerd and the tests' own rules take what is on a loopback address without TLS.
const Private = "127.0.0.2"

// Login is the user who may see it, and the password, as they are in docker's config.json.
const Login = "scientist:not for everybody"

// isPrivate tells whether a request came to the private address.
func isPrivate(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && strings.HasPrefix(local.String(), Private+":")
}

// Handler is the registry's HTTP handler. Besides the images it has repositories that fail in the ways registries fail,
// one for each entry of faults, for any name below it: a pull of ADDR/forbidden/x meets a 403.
func (s Store) Handler(log *log.Logger) http.Handler {
	good := registry.New(registry.WithBlobHandler(registry.NewDiskBlobHandler(s.Dir)), registry.Logger(log))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isPrivate(r) {
			if user, password, _ := r.BasicAuth(); user+":"+password != Login {
				faults["unauthorized"](w, r)
				return
			}
		}
		rest, _ := strings.CutPrefix(r.URL.Path, "/v2/")
		kind, _, _ := strings.Cut(rest, "/")
		if fault, ok := faults[kind]; ok {
			fault(w, r)
			return
		}
		good.ServeHTTP(w, r)
	})
}

var faults = map[string]http.HandlerFunc{
	"unauthorized": refuse(http.StatusUnauthorized, "UNAUTHORIZED", "authentication required"),
	"forbidden":    refuse(http.StatusForbidden, "DENIED", "requested access to the resource is denied"),
	"toomany":      refuse(http.StatusTooManyRequests, "TOOMANYREQUESTS", "you have reached your pull rate limit"),
	"broken":       refuse(http.StatusInternalServerError, "UNKNOWN", "internal error"),
	"down":         refuse(http.StatusServiceUnavailable, "UNAVAILABLE", "service unavailable"),
	"hang": func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(time.Hour):
		}
	},
}

// refuse answers with an error in the form of the distribution specification.
func refuse(status int, code, message string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", `Basic realm="podstarter"`)
		}
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"errors":[{"code":%q,"message":%q}]}`, code, message)
	}
}
