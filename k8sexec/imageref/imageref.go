// Package imageref reads the names of images as jobs and admins write them, and finds
// them in messages of kubelet and runtime.
package imageref

import (
	"errors"
	"fmt"
	"strings"

	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
)

// Image is a reference to an image in a registry, fully spelled out. The zero value
// means no image.
type Image struct {
	Repository string        // with registry: docker.io/library/busybox
	Tag        string        // empty only if there is a digest
	Digest     digest.Digest // as the user gave it, mostly empty
}

// MaxText bounds what is parsed: a repository name is limited to 255 bytes,
// a tag to 128 and a digest to some 140 by the grammar of
// github.com/distribution/reference.
const MaxText = 1024

// Parse reads an image as a job or an admin writes it, with an
// optional docker:// in front. Names without a registry are those of Docker Hub, names
// without a tag mean :latest; writing both out makes the result independent of
// how the node's container runtime completes short names.
func Parse(text string) (Image, error) {
	text = strings.TrimSpace(text)
	if len(text) > MaxText {
		return Image{}, fmt.Errorf("is %d bytes long, more than any reference to an image", len(text))
	}
	name, isDocker := strings.CutPrefix(text, "docker://")
	if err := notInRegistry(name, isDocker); err != nil {
		return Image{}, err
	}
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return Image{}, err
	}
	named = reference.TagNameOnly(named)
	img := Image{Repository: named.Name()}
	if tagged, ok := named.(reference.Tagged); ok {
		img.Tag = tagged.Tag()
	}
	if digested, ok := named.(reference.Digested); ok {
		img.Digest = digested.Digest()
	}
	return img, nil
}

// notInRegistry recognises images that HTCondor knows but a pod cannot run. The
// parser's own message would not help their user.
func notInRegistry(name string, isDocker bool) error {
	scheme, _, hasScheme := strings.Cut(name, "://")
	switch {
	case name == "":
		return errors.New("is empty")
	case hasScheme && isDocker:
		return fmt.Errorf("has two schemes, docker:// and %s://", scheme)
	case hasScheme:
		return fmt.Errorf("begins with %s://, but a pod runs only images from a registry; write docker://registry/name:tag or registry/name:tag", scheme)
	case strings.HasPrefix(name, "/"), strings.HasPrefix(name, "."), strings.HasSuffix(name, ".sif"):
		return errors.New("is a file or a directory, but a pod runs only images from a registry; write registry/name:tag")
	}
	return nil
}

// String is the image as requested, spelled out.
func (i Image) String() string {
	s := i.Repository
	if i.Tag != "" {
		s += ":" + i.Tag
	}
	if i.Digest != "" {
		s += "@" + i.Digest.String()
	}
	return s
}

// IsMoving says whether the reference may point to another image later.
func (i Image) IsMoving() bool { return i.Digest == "" }

// Once is the image with a throw-away tag: where there is a digest, container runtimes
// ignore the tag, but the kubelet's restart back-off goes by the whole string
// (kuberuntime/helpers.go:GetBackoffKey).
func (i Image) Once(tag string, d digest.Digest) string {
	return i.Repository + ":" + tag + "@" + d.String()
}

// OnceTag makes a tag of an activation's name, by which an admin finds the run that an
// image string belongs to, and of a nonce, so that no tag is used twice.
func OnceTag(activation, nonce string) string {
	const prefix = "run-"
	const nonceDigits, maxTag = 12, 128 // the latter from the grammar of references
	var b strings.Builder
	b.WriteString(prefix)
	for _, c := range []byte(activation) {
		switch {
		case b.Len() >= maxTag-1-nonceDigits:
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_':
			b.WriteByte(c)
		default:
			b.WriteByte('-')
		}
	}
	if len(nonce) > nonceDigits {
		nonce = nonce[:nonceDigits]
	}
	return b.String() + "-" + nonce
}

// DigestIn gives the digest in the imageID of a container's status if it belongs to
// this image's repository. The runtime may report any of the names by which it knows
// the image, and a digest of another repository need not exist in this one. A bare
// sha256: is the ID of the image's configuration, which cannot be pulled.
func (i Image) DigestIn(imageID string) (digest.Digest, bool) {
	if len(imageID) > MaxText {
		return "", false
	}
	_, after, found := strings.Cut(imageID, "://") // docker-pullable://name@digest
	if found {
		imageID = after
	}
	named, err := reference.ParseNormalizedNamed(imageID)
	if err != nil || named.Name() != i.Repository {
		return "", false
	}
	digested, ok := named.(reference.Digested)
	if !ok {
		return "", false
	}
	return digested.Digest(), true
}

// Named says whether a message of kubelet or runtime names the image in the spec
// string. Runtimes spell references out and drop the tag beside a digest, so Named
// looks for each spelling.
func Named(message, spec string) bool {
	if spec == "" {
		return false
	}
	if containsReference(message, spec) {
		return true
	}
	img, err := Parse(spec)
	if err != nil {
		return false
	}
	if img.Digest != "" {
		return containsReference(message, img.Repository+"@"+img.Digest.String())
	}
	return containsReference(message, img.String())
}

// containsReference looks for ref in text, but not as the beginning of a longer
// reference: busybox:1.36 does not name busybox:1.
func containsReference(text, ref string) bool {
	for rest := text; ; {
		i := strings.Index(rest, ref)
		if i < 0 {
			return false
		}
		rest = rest[i+len(ref):]
		if rest == "" || !strings.ContainsRune(referenceBytes, rune(rest[0])) || endsSentence(rest) {
			return true
		}
	}
}

const referenceBytes = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/@"

// endsSentence distinguishes a full stop from the dot inside a tag.
func endsSentence(rest string) bool {
	return rest[0] == '.' && (len(rest) == 1 || rest[1] == ' ' || rest[1] == '\n')
}
