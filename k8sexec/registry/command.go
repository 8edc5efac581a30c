package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"

	"podstarter/k8sexec/imageref"
)

// Command is what an image runs by itself (OCI image specification, config.md; docker's Dockerfile
// reference, ENTRYPOINT and CMD).
type Command struct {
	Entrypoint []string `json:"entrypoint,omitempty"`
	Cmd        []string `json:"cmd,omitempty"`
}

const (
	// maxWords and maxWordBytes bound both lists together. The kernel takes a word of 128 KiB
	// (execve(2), MAX_ARG_STRLEN).
	maxWords     = 1024
	maxWordBytes = 128 << 10
)

// ErrPlatform is in the error about an image whose index has nothing for this node's processor. What the configuration of
// an image without an index says keeps no container runtime from running it.
var ErrPlatform = errors.New("the image is not for this node")

// Media types of manifests and indexes, by OCI and by docker.
const (
	dockerManifest = "application/vnd.docker.distribution.manifest.v2+json"
	dockerIndex    = "application/vnd.docker.distribution.manifest.list.v2+json"
)

// Command gives the command of the image with that digest, for this node's platform.
func (c *Client) Command(ctx context.Context, img imageref.Image, d digest.Digest) (Command, error) {
	if err := d.Validate(); err != nil {
		return Command{}, fmt.Errorf("understanding the digest of %s: %w", img, err)
	}
	if kept, ok := c.kept(d); ok {
		return kept, nil
	}
	repo, err := c.repository(img)
	if err != nil {
		return Command{}, err
	}
	var found Command
	err = c.ask(ctx, repo, "the configuration of "+img.Repository+"@"+d.String(), func(ctx context.Context) (err error) {
		found, err = c.read(ctx, repo, d)
		return err
	})
	if err != nil {
		return Command{}, err
	}
	c.keep(d, found)
	return found, nil
}

// read reads manifest and configuration.
func (c *Client) read(ctx context.Context, repo *remote.Repository, d digest.Digest) (Command, error) {
	manifest, _, err := c.manifest(ctx, repo, d)
	if err != nil {
		return Command{}, err
	}
	config, err := fetch(ctx, repo.Blobs(), manifest.Config)
	if err != nil {
		return Command{}, fmt.Errorf("reading the image's configuration: %w", err)
	}
	return decodeCommand(config)
}

// How well an image fits this node.
const (
	none   = iota
	silent // it does not say what it is for
	older  // for processors whose programs this one runs, too
	exact
)

// fits says how well an image for that platform fits this node, by containerd's rules and its other names of architectures
// (containerd/platforms, compare.go:platformVector, database.go:normalizeArch).
func (c *Client) fits(p ocispec.Platform) int {
	switch strings.ToLower(p.OS) {
	case "", "linux":
	default:
		return none
	}
	arch := strings.ToLower(p.Architecture)
	switch arch {
	case "":
		return silent
	case "x86_64", "x86-64":
		arch = "amd64"
	case "i386":
		arch = "386"
	case "aarch64":
		arch = "arm64"
	case "armhf", "armel":
		arch = "arm"
	}
	switch {
	case arch == c.opt.Architecture:
		return exact
	case c.opt.Architecture == "amd64" && arch == "386", c.opt.Architecture == "arm64" && arch == "arm":
		return older
	}
	return none
}

// manifest is the one with that digest, or the one for this platform in the index with that digest, with its own digest.
func (c *Client) manifest(ctx context.Context, repo *remote.Repository, d digest.Digest) (ocispec.Manifest, digest.Digest, error) {
	fail := func(err error) (ocispec.Manifest, digest.Digest, error) { return ocispec.Manifest{}, "", err }
	text, kind, err := fetchManifest(ctx, repo, d)
	if err != nil {
		return fail(err)
	}
	if kind == dockerIndex || kind == ocispec.MediaTypeImageIndex {
		if d, err = c.choose(text); err != nil {
			return fail(err)
		}
		if text, kind, err = fetchManifest(ctx, repo, d); err != nil {
			return fail(err)
		}
	}
	if kind != dockerManifest && kind != ocispec.MediaTypeImageManifest {
		return fail(unusable{fmt.Errorf("the registry has something of type %q under this name, and no image", kind)})
	}
	var m ocispec.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return fail(unusable{fmt.Errorf("decoding the image's manifest: %w", err)})
	}
	return m, d, nil
}

// choose chooses from an index as containerd does: the first of those that fit best. One that does not say for what it
// is may fit, too.
func (c *Client) choose(index []byte) (digest.Digest, error) {
	var all ocispec.Index
	if err := json.Unmarshal(index, &all); err != nil {
		return "", fmt.Errorf("decoding the index of the image's platforms: %w", err)
	}
	best, found := none, digest.Digest("")
	for _, m := range all.Manifests {
		fits := silent
		if m.Platform != nil {
			fits = c.fits(*m.Platform)
		}
		if fits > best {
			best, found = fits, m.Digest
		}
	}
	if best > none {
		return found, found.Validate()
	}
	return "", fmt.Errorf("%w: it has none for linux/%s", ErrPlatform, c.opt.Architecture)
}

// fetchManifest reads a manifest or an index, which has the digest.
func fetchManifest(ctx context.Context, repo *remote.Repository, d digest.Digest) (text []byte, kind string, err error) {
	desc, body, err := repo.Manifests().FetchReference(ctx, d.String())
	if err != nil {
		return nil, "", fmt.Errorf("reading the image's manifest: %w", err)
	}
	defer body.Close()
	if text, err = readAll(body, desc); err != nil {
		return nil, "", fmt.Errorf("reading the image's manifest: %w", err)
	}
	return text, desc.MediaType, nil
}

// fetch reads a blob that somebody else describes.
func fetch(ctx context.Context, from content.Fetcher, desc ocispec.Descriptor) ([]byte, error) {
	if err := desc.Digest.Validate(); err != nil {
		return nil, err
	}
	if desc.Size < 0 || desc.Size > maxBytes {
		return nil, fmt.Errorf("it has %d bytes, and %d are allowed", desc.Size, maxBytes)
	}
	body, err := from.Fetch(ctx, desc)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return readAll(body, desc)
}

// readAll reads what must have the size and the digest of its description.
func readAll(body io.Reader, desc ocispec.Descriptor) ([]byte, error) {
	if desc.Size < 0 || desc.Size > maxBytes {
		return nil, fmt.Errorf("it has %d bytes, and %d are allowed", desc.Size, maxBytes)
	}
	return content.ReadAll(body, desc)
}

// decodeCommand reads an image's configuration.
func decodeCommand(config []byte) (Command, error) {
	var image ocispec.Image
	if err := json.Unmarshal(config, &image); err != nil {
		return Command{}, fmt.Errorf("decoding the image's configuration: %w", err)
	}
	c := Command{Entrypoint: image.Config.Entrypoint, Cmd: image.Config.Cmd}
	return c, c.check()
}

// check refuses what could not be executed.
func (c Command) check() error {
	words, bytes := len(c.Entrypoint)+len(c.Cmd), 0
	for _, list := range [][]string{c.Entrypoint, c.Cmd} {
		for _, w := range list {
			if strings.ContainsRune(w, 0) {
				return errors.New("the command in the image's configuration contains a zero byte")
			}
			bytes += len(w)
		}
	}
	if words > maxWords || bytes > maxWordBytes {
		return fmt.Errorf("the command in the image's configuration has %d words and %d bytes; at most %d and %d are taken", words, bytes, maxWords, maxWordBytes)
	}
	return nil
}
