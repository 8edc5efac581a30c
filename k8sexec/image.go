package k8sexec

import (
	"errors"
	"fmt"
	"strings"

	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
)

// image is a reference to an image in a registry, fully spelled out. The zero
// value is no image.
type image struct {
	repository string        // with registry: docker.io/library/busybox
	tag        string        // empty only if there is a digest
	digest     digest.Digest // as the user gave it, mostly empty
}

// maxImageText bounds what is parsed: a repository name is limited to 255 bytes,
// a tag to 128 and a digest to some 140 by the grammar of
// github.com/distribution/reference.
const maxImageText = 1024

// parseImage reads an image as a job or an admin writes it, an optional
// docker:// in front. Names without a registry are those of Docker Hub, names
// without a tag mean :latest; writing both out makes the result independent of
// how the node's container runtime completes short names.
func parseImage(text string) (image, error) {
	text = strings.TrimSpace(text)
	if len(text) > maxImageText {
		return image{}, fmt.Errorf("is %d bytes long, more than any reference to an image", len(text))
	}
	name, isDocker := strings.CutPrefix(text, "docker://")
	if err := notInRegistry(name, isDocker); err != nil {
		return image{}, err
	}
	named, err := reference.ParseNormalizedNamed(name)
	if err != nil {
		return image{}, err
	}
	named = reference.TagNameOnly(named)
	img := image{repository: named.Name()}
	if tagged, ok := named.(reference.Tagged); ok {
		img.tag = tagged.Tag()
	}
	if digested, ok := named.(reference.Digested); ok {
		img.digest = digested.Digest()
	}
	return img, nil
}

// notInRegistry recognises images that HTCondor knows and a pod cannot run, for
// which the parser's own words would be of little help.
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

// String is the image as it was asked for, spelled out.
func (i image) String() string {
	s := i.repository
	if i.tag != "" {
		s += ":" + i.tag
	}
	if i.digest != "" {
		s += "@" + i.digest.String()
	}
	return s
}

// isMoving tells whether what the reference points to may change.
func (i image) isMoving() bool { return i.digest == "" }

// once is the image with a tag that means nothing: where there is a digest,
// container runtimes go by that alone, whereas the kubelet's restart back-off
// goes by the string (kuberuntime/helpers.go:GetBackoffKey).
func (i image) once(tag string, d digest.Digest) string {
	return i.repository + ":" + tag + "@" + d.String()
}

// onceTag makes a tag of an activation's name, so that an admin finds the run
// that an image string belongs to, and of a nonce, so that it is never used
// again.
func onceTag(activation, nonce string) string {
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

// digestOf takes the digest out of the imageID of a container's status if it is
// one of this image's repository. The runtime reports the image under any of the
// names it knows it by, and a digest of another repository need not exist in
// this one; a bare sha256: is the ID of the image's configuration, which cannot
// be pulled.
func (i image) digestOf(imageID string) (digest.Digest, bool) {
	if len(imageID) > maxImageText {
		return "", false
	}
	_, after, found := strings.Cut(imageID, "://") // docker-pullable://name@digest
	if found {
		imageID = after
	}
	named, err := reference.ParseNormalizedNamed(imageID)
	if err != nil || named.Name() != i.repository {
		return "", false
	}
	digested, ok := named.(reference.Digested)
	if !ok {
		return "", false
	}
	return digested.Digest(), true
}

// namesImage tells whether a message of kubelet or runtime speaks of the image
// in the spec string. Runtimes spell references out and drop the tag beside a
// digest, so each of the spellings counts.
func namesImage(message, spec string) bool {
	if spec == "" {
		return false
	}
	if containsReference(message, spec) {
		return true
	}
	img, err := parseImage(spec)
	if err != nil {
		return false
	}
	if img.digest != "" {
		return containsReference(message, img.repository+"@"+img.digest.String())
	}
	return containsReference(message, img.String())
}

// containsReference looks for ref in text where it does not go on: busybox:1 is
// not named by busybox:1.36.
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

// endsSentence tells a full stop from the dot inside a tag.
func endsSentence(rest string) bool {
	return rest[0] == '.' && (len(rest) == 1 || rest[1] == ' ' || rest[1] == '\n')
}
