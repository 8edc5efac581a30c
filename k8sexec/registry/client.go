package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"podstarter/internal/buildinfo"
	"podstarter/k8sexec/imageref"
	"podstarter/payload"
)

// Knobs of the site, which messages name.
const (
	KnobAsk   = "POD_STARTER_ASK_REGISTRIES"
	KnobAuth  = "POD_STARTER_REGISTRY_AUTH"
	KnobPlain = "POD_STARTER_PLAIN_REGISTRIES"
)

// Options are how a [Client] asks.
type Options struct {
	// PrivateDir is where answers are kept (POD_STARTER_PRIVATE_DIR).
	PrivateDir string
	// Auth is a file with credentials as docker's config.json has them (the key "auths"); empty
	// to ask as nobody in particular.
	Auth string
	// Plain are the registries, HOST or HOST:PORT, that are asked by HTTP without TLS. Only these may be on a
	// loopback address: the node's is meant, and in the pod any job can answer there.
	Plain []string
	// Architecture is that of the node, by Go's names.
	Architecture string
	// Log gets warnings.
	Log *slog.Logger
}

// A Client asks registries. Its methods may be called from several goroutines.
type Client struct {
	opt   Options
	now   func() time.Time
	asked *auth.Client
	// forUser says that a job's user asks.
	forUser bool
}

const (
	// maxTime bounds all requests for one image. A job waits for it.
	maxTime = 10 * time.Second
	// maxConnect bounds a connection: where a firewall drops what pilots send to registries, each
	// attempt takes as long.
	maxConnect = 3 * time.Second
	// maxBytes bounds an answer. Registries take manifests of up to 4 MiB (OCI distribution
	// specification, "Pushing Manifests").
	maxBytes = 4 << 20
	// maxRedirects is how often an answer may lead elsewhere. Registries send readers of layers on to a store, once.
	maxRedirects = 5
	// maxHeader bounds the header of an answer.
	maxHeader = 64 << 10
)

// New makes a client.
func New(o Options) *Client {
	c := &Client{opt: o, now: time.Now}
	c.asked = newAuth(bounded{transport()}, c.credential)
	return c
}

func transport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: maxConnect}).DialContext,
		TLSHandshakeTimeout:    maxConnect,
		ResponseHeaderTimeout:  maxTime,
		MaxResponseHeaderBytes: maxHeader,
		ForceAttemptHTTP2:      true,
		IdleConnTimeout:        maxConnect, // the starter lives as long as its job
	}
}

// newAuth asks with somebody's credentials.
func newAuth(by http.RoundTripper, credential auth.CredentialFunc) *auth.Client {
	c := &auth.Client{Client: &http.Client{Transport: by, CheckRedirect: redirected}, Cache: auth.NewCache(), Credential: credential}
	c.SetUserAgent("podstarter/" + buildinfo.Version())
	return c
}

// credential is the site's for a registry. The file is read each time: a mounted Secret changes.
func (c *Client) credential(ctx context.Context, hostport string) (auth.Credential, error) {
	if c.opt.Auth == "" {
		return auth.EmptyCredential, nil
	}
	// A file that is missing is an empty one to the library. Its errors may contain what is in the file: they
	// stay here.
	_, err := os.Stat(c.opt.Auth)
	found := auth.EmptyCredential
	if err == nil {
		var store *credentials.FileStore
		if store, err = credentials.NewFileStore(c.opt.Auth); err == nil {
			found, err = credentials.Credential(store)(ctx, hostport)
		}
		if err != nil {
			err = errors.New("it is no file as docker login writes it, or its entry for the registry is none")
		}
	}
	if err != nil {
		c.opt.Log.Warn("Asking a registry without credentials", "registry", hostport, "file", c.opt.Auth, "error", err)
		return auth.EmptyCredential, nil
	}
	return found, nil
}

// repository is where an image is.
func (c *Client) repository(img imageref.Image) (*remote.Repository, error) {
	repo, err := remote.NewRepository(img.Repository)
	if err != nil {
		return nil, fmt.Errorf("understanding the repository %s: %w", img.Repository, err)
	}
	repo.Client = c.asked
	repo.MaxMetadataBytes = maxBytes
	repo.SkipReferrersGC = true
	host := repo.Reference.Registry
	repo.PlainHTTP = slices.Contains(c.opt.Plain, host)
	if isLoopback(host) && !repo.PlainHTTP {
		return nil, fmt.Errorf("asking %s about %s: its address is the pod's own, where any job may answer, and the node has another; if it is the site's, list it in %s", host, img, KnobPlain)
	}
	return repo, nil
}

// isLoopback tells which registries are at an address that each machine, and each pod, has for itself.
func isLoopback(registry string) bool {
	host := registry
	if h, _, err := net.SplitHostPort(registry); err == nil {
		host = h
	}
	host = strings.TrimSuffix(host, ".")
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsUnspecified())
}

// isLinkLocal tells which addresses are those of services of a node, such as a cloud's metadata.
func isLinkLocal(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return ip != nil && ip.IsLinkLocalUnicast()
}

// Resolve asks to which digest a tag points now. An image with a digest points to that.
func (c *Client) Resolve(ctx context.Context, img imageref.Image) (digest.Digest, error) {
	if img.Digest != "" {
		return img.Digest, nil
	}
	return c.head(ctx, img, img.Tag)
}

// Shows has no error if the registry shows the image to whoever asks here.
func (c *Client) Shows(ctx context.Context, img imageref.Image) error {
	name := img.Tag
	if img.Digest != "" {
		name = img.Digest.String()
	}
	_, err := c.head(ctx, img, name)
	return err
}

// head asks for the digest of what has a name in the image's repository.
func (c *Client) head(ctx context.Context, img imageref.Image, name string) (digest.Digest, error) {
	repo, err := c.repository(img)
	if err != nil {
		return "", err
	}
	var found digest.Digest
	err = c.ask(ctx, repo, "the digest of "+img.String(), func(ctx context.Context) error {
		desc, err := repo.Manifests().Resolve(ctx, name)
		if err == nil {
			err = desc.Digest.Validate()
		}
		found = desc.Digest
		return err
	})
	if err != nil {
		return "", err
	}
	return found, nil
}

// ask bounds requests to a registry in time, and says what to do about a failure. A registry that
// was not reached is left alone for a while.
func (c *Client) ask(ctx context.Context, repo *remote.Repository, what string, do func(context.Context) error) error {
	host := repo.Reference.Registry
	if err := c.unreached(host); err != nil {
		return fmt.Errorf("asking for %s: %w: %w", what, payload.ErrPassing, err)
	}
	outer := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, maxTime, fmt.Errorf("no answer within %s", maxTime))
	defer cancel()
	err := do(ctx)
	switch {
	case err == nil:
		return nil
	case outer.Err() != nil:
		return context.Cause(outer)
	case isSilence(err) || ctx.Err() != nil:
		c.noteUnreached(host)
		err = fmt.Errorf("%w: %w", payload.ErrPassing, err)
	case isBusy(err):
		err = fmt.Errorf("%w: %w", payload.ErrPassing, err)
	}
	return fmt.Errorf("asking for %s: %w%s", what, err, c.advice(host, err))
}

// isBusy tells whether a registry had no time, or a fault of its own.
func isBusy(err error) bool {
	answer := (*errcode.ErrorResponse)(nil)
	return errors.As(err, &answer) && (answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode >= http.StatusInternalServerError)
}

// isSilence tells whether a registry gave no answer at all.
func isSilence(err error) bool {
	var operation *net.OpError
	var name *net.DNSError
	var network net.Error
	return errors.As(err, &operation) || errors.As(err, &name) || errors.As(err, &network) && network.Timeout() || errors.Is(err, context.DeadlineExceeded)
}

// advice is what the site can do about a failure.
func (c *Client) advice(host string, err error) string {
	answer := (*errcode.ErrorResponse)(nil)
	switch {
	case errors.As(err, &answer) && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden), errors.Is(err, auth.ErrBasicCredentialNotFound):
		if c.forUser {
			return "; docker login at the access point may help"
		}
		if c.opt.Auth == "" {
			return "; the registry does not tell everybody: the site can give the starter credentials (" + KnobAuth + ")"
		}
		return fmt.Sprintf("; look at the credentials for %s in %s (%s)", host, c.opt.Auth, KnobAuth)
	case isSilence(err):
		return "; the pilot container does not reach the registry"
	}
	return ""
}

// bounded is a transport whose answers have an end.
type bounded struct{ to http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.to.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Body = &boundedBody{ReadCloser: resp.Body, left: maxBytes}
	return resp, nil
}

type boundedBody struct {
	io.ReadCloser
	left int64
}

var errTooLong = fmt.Errorf("the answer is longer than %d bytes", maxBytes)

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errTooLong
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return n, errTooLong
	}
	return n, err
}
