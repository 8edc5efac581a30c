package image

import (
	"errors"
	"fmt"
	"strings"

	"github.com/distribution/reference"
)

// Reference is an image in a registry, fully spelled out: two references to the
// same image are equal. The zero value means no image.
type Reference struct {
	// Registry is the host and perhaps the port, in lower case: docker.io,
	// registry.example.org:5000.
	Registry string
	// Path of the repository in the registry: library/debian.
	Path string
	// Tag is empty only if there is a digest. If both are given, only the digest
	// decides what runs.
	Tag    string
	Digest string
}

// maxReference bounds what is parsed, in bytes.
const maxReference = 1024

const (
	dockerHub    = "docker.io"
	dockerScheme = "docker://"
	httpsPort    = ":443"
)

// hubNames are the other names of Docker Hub.
var hubNames = [...]string{"index.docker.io", "registry-1.docker.io", "registry.hub.docker.com"}

// Parse reads a reference as people write it, with an optional docker:// in
// front. As with docker and the kubelet, a missing registry is Docker Hub and a
// missing tag is latest. Names of a registry are normalized: the host to lower
// case, without the default port of https, and Docker Hub's other names to
// docker.io.
func Parse(text string) (Reference, error) {
	text = strings.TrimPrefix(strings.TrimSpace(text), dockerScheme)
	switch {
	case text == "":
		return Reference{}, errors.New("it is empty")
	case len(text) > maxReference:
		return Reference{}, fmt.Errorf("it is %d bytes long, more than any reference to an image", len(text))
	}
	if host, path, ok := strings.Cut(text, "/"); ok {
		folded := foldRegistry(host)
		if folded != host && !isRegistry(folded) {
			return Reference{}, fmt.Errorf("%s is neither a registry, which has a dot, a port or the name localhost, nor a repository, which has no capitals", excerpt(host))
		}
		text = folded + "/" + path
	}
	named, err := reference.ParseNormalizedNamed(text)
	if err != nil {
		return Reference{}, err
	}
	named = reference.TagNameOnly(named)
	r := Reference{Registry: reference.Domain(named), Path: reference.Path(named)}
	if tagged, ok := named.(reference.Tagged); ok {
		r.Tag = tagged.Tag()
	}
	if digested, ok := named.(reference.Digested); ok {
		r.Digest = digested.Digest().String()
	}
	return r, nil
}

// foldRegistry normalizes a registry's name.
func foldRegistry(host string) string {
	host = strings.ToLower(host)
	if without := strings.TrimSuffix(host, httpsPort); isRegistry(without) {
		host = without
	}
	for _, hub := range hubNames {
		if host == hub {
			return dockerHub
		}
	}
	return host
}

// isRegistry reports whether the first part of a reference is a registry and not
// a user of Docker Hub (github.com/distribution/reference: splitDockerDomain,
// except for capitals).
func isRegistry(first string) bool {
	return first == "localhost" || strings.ContainsAny(first, ".:")
}

// String returns the reference in the form for the container runtime.
func (r Reference) String() string { return r.Registry + "/" + r.name() }

// Repository is the reference without tag and digest.
func (r Reference) Repository() string { return r.Registry + "/" + r.Path }

// name is the reference without the registry.
func (r Reference) name() string {
	s := r.Path
	if r.Tag != "" {
		s += ":" + r.Tag
	}
	if r.Digest != "" {
		s += "@" + r.Digest
	}
	return s
}
