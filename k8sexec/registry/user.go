package registry

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"

	"podstarter/k8sexec/imageref"
	"podstarter/k8sexec/verdict"
)

// User asks registries with the credentials of a job's user. They stay in memory, and nothing that registries tell
// is kept, since it is not for other users.
type User struct {
	client *Client
	files  *auth.Client // for what is longer than a manifest
	auths  map[string]json.RawMessage
}

// As is the client for a user. config is docker's config.json, of which only "auths" counts. The error does not say what is in it.
func (c *Client) As(config []byte) (*User, error) {
	var file struct {
		Auths map[string]json.RawMessage `json:"auths"`
	}
	if err := json.Unmarshal(config, &file); err != nil {
		return nil, errors.New("understanding the job's credentials for registries: they are not as docker's config.json has them; docker login at the access point may help")
	}
	u := &User{auths: file.Auths}
	own := *c
	own.forUser = true
	own.asked = newAuth(bounded{transport()}, u.credential)
	u.client, u.files = &own, newAuth(transport(), u.credential)
	return u, nil
}

// hubs are the names of one registry.
var hubs = []string{"docker.io", "index.docker.io", "registry-1.docker.io"}

// isFor tells whether the entry of that name is for a registry: with a scheme or without, and with a path that only
// says the version of the interface (docker's config file, "auths").
func isFor(entry, registry string) bool {
	name := strings.TrimPrefix(strings.TrimPrefix(entry, "https://"), "http://")
	host, path, _ := strings.Cut(name, "/")
	switch strings.Trim(path, "/") {
	case "", "v1", "v2":
	default:
		return false
	}
	return host == registry || slices.Contains(hubs, host) && slices.Contains(hubs, registry)
}

// credential is the user's for a registry.
func (u *User) credential(ctx context.Context, registry string) (auth.Credential, error) {
	var names []string
	for name := range u.auths {
		if isFor(name, registry) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return auth.EmptyCredential, nil
	}
	// The registry's own name is the shortest, and counts.
	slices.SortFunc(names, func(a, b string) int {
		if d := len(a) - len(b); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	text, err := json.Marshal(map[string]any{"auths": map[string]any{registry: u.auths[names[0]]}})
	if err == nil {
		var store credentials.Store
		if store, err = credentials.NewMemoryStoreFromDockerConfig(text); err == nil {
			return store.Get(ctx, registry)
		}
	}
	return auth.EmptyCredential, fmt.Errorf("understanding the job's credentials for %s: the entry is not as docker's config.json has it", registry)
}

// Has tells whether there are credentials for the registry of an image.
func (u *User) Has(img imageref.Image) bool {
	repo, err := u.client.repository(img)
	if err != nil {
		return false
	}
	found, err := u.credential(context.Background(), repo.Reference.Host())
	return err != nil || found != auth.EmptyCredential
}

// Image is an image of a registry that its user may pull.
type Image struct {
	// Digest is that of its manifest for this platform.
	Digest digest.Digest
	Command
	// Env are its variables, NAME=value.
	Env []string
	// Bytes is the size of all layers as the registry has them.
	Bytes int64

	named  imageref.Image
	layers []ocispec.Descriptor
	repo   *remote.Repository
}

// maxLayers bounds the layers of an image. Docker's own bound is 127.
const maxLayers = 512

// Open reads of what an image consists. Its errors are *[payload.Verdict].
func (u *User) Open(ctx context.Context, img imageref.Image) (*Image, error) {
	found, err := u.open(ctx, img)
	if err != nil {
		return nil, judge(ctx, img, err)
	}
	return found, nil
}

// unusable is the error of an image that its user has to build otherwise.
type unusable struct{ error }

// Unwrap gives the cause.
func (u unusable) Unwrap() error { return u.error }

// queries are in addresses to which registries send on, and let whoever has them read a layer.
var queries = regexp.MustCompile(`(https?://[^\s"?]+)\?[^\s"]*`)

// judge says what a failure means: the same as if the kubelet had met it, but never that this pod is to blame, which
// has only heard the words of a registry that the user chose.
func judge(ctx context.Context, img imageref.Image, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	words := "with the job's own credentials: " + queries.ReplaceAllString(err.Error(), "$1?...")
	f := verdict.Failure{Origin: verdict.FromContainer, Reason: verdict.ReasonErrPull, Image: img.String(), Message: words, Err: err}
	if errors.As(err, new(unusable)) {
		return verdict.Judgement{Class: verdict.ToUser, Subcode: verdict.SubcodeBadImage, Says: fmt.Sprintf("The image %q cannot be used.", img), Failure: f}.Verdict()
	}
	if errors.Is(err, ErrPlatform) {
		f.Reason = verdict.ReasonPlatform
	}
	j := verdict.Judge(f)
	if j.Class == verdict.ToPilot || j.Suspect {
		j = verdict.Judgement{Class: verdict.ToElsewhere, Says: fmt.Sprintf("The registry of image %q is out of order.", img), Failure: f}
	}
	return j.Verdict()
}

func (u *User) open(ctx context.Context, img imageref.Image) (*Image, error) {
	c := u.client
	repo, err := c.repository(img)
	if err != nil {
		return nil, err
	}
	found := &Image{named: img}
	var config []byte
	if err := c.ask(ctx, repo, "image "+img.String(), func(ctx context.Context) error {
		d := img.Digest
		if d == "" {
			desc, err := repo.Manifests().Resolve(ctx, img.Tag)
			if err != nil {
				return err
			}
			d = desc.Digest
		}
		if err := d.Validate(); err != nil {
			return err
		}
		m, own, err := c.manifest(ctx, repo, d)
		if err != nil {
			return err
		}
		found.Digest, found.layers = own, m.Layers
		config, err = fetch(ctx, repo.Blobs(), m.Config)
		return err
	}); err != nil {
		return nil, err
	}
	if found.Command, err = decodeCommand(config); err != nil {
		return nil, unusable{err}
	}
	if found.Env, err = decodeEnv(config); err != nil {
		return nil, unusable{err}
	}
	if err := found.measure(); err != nil {
		return nil, err
	}
	if found.repo, err = c.repository(img); err != nil {
		return nil, err
	}
	found.repo.Client = u.files
	return found, nil
}

// measure adds up the layers, which must be such as can be unpacked.
func (i *Image) measure() error {
	if len(i.layers) == 0 || len(i.layers) > maxLayers {
		return unusable{fmt.Errorf("the image has %d layers, at least one and at most %d are possible", len(i.layers), maxLayers)}
	}
	for _, l := range i.layers {
		if err := l.Digest.Validate(); err != nil {
			return unusable{fmt.Errorf("understanding the digest of a layer: %w", err)}
		}
		if l.Size < 0 || l.Size > 1<<50 {
			return unusable{fmt.Errorf("a layer has a size of %d bytes", l.Size)}
		}
		if strings.Contains(l.MediaType, "encrypted") || strings.Contains(l.MediaType, ".foreign.") {
			return unusable{fmt.Errorf("the image has a layer of the type %.100q, which cannot be unpacked here", l.MediaType)}
		}
		i.Bytes += l.Size
	}
	return nil
}

// Layers is the number of layers.
func (i *Image) Layers() int { return len(i.layers) }

// Copy writes all layers, the lowest first, as a tar archive of files. An error of the registry is a *[payload.Verdict], one of w is
// as it is.
func (i *Image) Copy(ctx context.Context, w io.Writer) error {
	out := &output{w: w}
	archive := tar.NewWriter(out)
	buffer := make([]byte, 128<<10)
	for n, l := range i.layers {
		err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: l.Digest.Encoded(), Size: l.Size, Mode: 0o444})
		if err == nil {
			err = i.copyLayer(ctx, archive, l, buffer)
		}
		switch {
		case out.err != nil:
			return fmt.Errorf("passing on layer %d of %s: %w", n+1, i.named, out.err)
		case err != nil:
			return judge(ctx, i.named, fmt.Errorf("reading layer %d of %d: %w", n+1, len(i.layers), err))
		}
	}
	return archive.Close()
}

// output remembers that it could not be written to, which is no fault of the registry.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.w.Write(p)
	if err != nil {
		o.err = err
	}
	return n, err
}

// maxStall is how long a registry may send nothing of a layer.
const maxStall = time.Minute

func (i *Image) copyLayer(ctx context.Context, w io.Writer, l ocispec.Descriptor, buffer []byte) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stalled := time.AfterFunc(maxStall, func() { cancel(fmt.Errorf("i/o timeout: the registry sends nothing for %s", maxStall)) })
	defer stalled.Stop()
	body, err := i.repo.Blobs().Fetch(ctx, l)
	if err == nil {
		defer body.Close()
		verified := content.NewVerifyReader(body, l)
		if _, err = io.CopyBuffer(w, moving{verified, stalled}, buffer); err == nil {
			err = verified.Verify()
		}
	}
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// moving starts a timer for each piece.
type moving struct {
	from  io.Reader
	timer *time.Timer
}

func (m moving) Read(p []byte) (int, error) {
	m.timer.Reset(maxStall)
	defer m.timer.Stop() // until the piece was passed on
	return m.from.Read(p)
}

// decodeEnv reads the variables in an image's configuration. Those that no process can have are left out.
func decodeEnv(config []byte) ([]string, error) {
	var image ocispec.Image
	if err := json.Unmarshal(config, &image); err != nil {
		return nil, fmt.Errorf("decoding the image's configuration: %w", err)
	}
	var env []string
	bytes := 0
	for _, entry := range image.Config.Env {
		if strings.IndexByte(entry, '=') < 1 || strings.ContainsRune(entry, 0) {
			continue
		}
		if bytes += len(entry); bytes > maxWordBytes || len(env) == maxWords {
			return nil, fmt.Errorf("the image's configuration has more than %d variables, or more than %d bytes of them", maxWords, maxWordBytes)
		}
		env = append(env, entry)
	}
	return env, nil
}

// redirected keeps an answer from leading to where only this pod or this node can go, or to where everybody can
// read along.
func redirected(req *http.Request, via []*http.Request) error {
	switch {
	case len(via) >= maxRedirects:
		return fmt.Errorf("the registry answers with more than %d other addresses", maxRedirects)
	case isLoopback(req.URL.Host) && req.URL.Host != via[0].URL.Host, isLinkLocal(req.URL.Host):
		return fmt.Errorf("the registry answers with the address %s, which is this node's own", req.URL.Host)
	case req.URL.Scheme != "https" && via[0].URL.Scheme == "https":
		return fmt.Errorf("the registry answers with an address of %s without TLS", req.URL.Host)
	}
	return nil
}
