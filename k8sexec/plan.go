package k8sexec

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"
	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/imageref"
	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/registry"
	"podstarter/k8sexec/verdict"
	"podstarter/payload"
)

// plan is how a binding writes an image into the pod's spec.
type plan struct {
	image  imageref.Image
	spec   string        // the string for the spec
	digest digest.Digest // what spec pins the image to, if anything
	// restart says that the spec already has this string: the kubelet will not make the
	// container anew by itself, so its wrapper has to leave.
	restart bool
	// record is the image that the container was created with, when the pod does
	// not say so yet.
	record string
}

// isOnce says whether the plan has a throw-away tag.
func (p plan) isOnce() bool { return p.spec != p.image.String() }

// binding is what the patch gives to a container.
func (p plan) binding(container, nonce string, known slot) podapi.Binding {
	return podapi.Binding{Container: container, Spec: p.spec, Nonce: nonce, Sidecar: known.Sidecar, DefaultImage: p.record}
}

// plain is the plan without the throw-away tag.
func (p plan) plain(spec string) plan {
	p.spec, p.digest = p.image.String(), p.image.Digest
	p.restart = p.spec == spec
	return p
}

// choose decides on the image string. It asks the API server only when it must:
// the first time in the life of a pod, and when the container runs the same
// plain reference already.
func (l *lease) choose(ctx context.Context, req payload.BindRequest, nonce string, s *slot) (plan, error) {
	var pod *corev1.Pod
	look := func() error {
		if pod != nil {
			return nil
		}
		var err error
		if pod, err = l.get(ctx); err != nil {
			return err
		}
		return l.survey(pod, s)
	}
	var p plan
	if s.DefaultImage == "" {
		if err := look(); err != nil {
			return plan{}, err
		}
		if pod.Annotations[podapi.DefaultImageAnnotation+l.name] == "" {
			p.record = s.DefaultImage
		}
	}
	var err error
	if p.image, err = l.wanted(req.Image, *s); err != nil {
		return plan{}, err
	}
	if p.digest = l.digestFor(p.image); p.digest == "" {
		if s.Spec == "" {
			if err := look(); err != nil {
				return plan{}, err
			}
		}
		if s.Spec == p.image.String() {
			if err := look(); err != nil {
				return plan{}, err
			}
			p.digest = l.recall(ctx, pod, p.image, *s)
		}
	}
	if p.digest != "" && l.backend.opt.ThrowawayTags && !s.PlainOnly {
		p.spec = p.image.Once(imageref.OnceTag(req.Activation, nonce), p.digest)
		return p, nil
	}
	return p.plain(s.Spec), nil
}

// wanted is the image of the request, or the default.
func (l *lease) wanted(asked string, s slot) (imageref.Image, error) {
	if strings.TrimSpace(asked) != "" {
		img, err := imageref.Parse(asked)
		if err != nil {
			return imageref.Image{}, &verdict.Failure{Origin: verdict.FromRequest, Reason: verdict.ReasonInvalidName, Image: asked, Message: err.Error()}
		}
		return img, nil
	}
	img, err := imageref.Parse(s.DefaultImage)
	if err != nil {
		return imageref.Image{}, &verdict.Failure{Origin: verdict.FromRequest, Reason: verdict.ReasonInvalidName, Image: s.DefaultImage, Message: fmt.Sprintf("from the pod's manifest: %v", err)}
	}
	return img, nil
}

// digestFor is the digest that the user gave, or a fresh one that was learned,
// or empty.
func (l *lease) digestFor(img imageref.Image) digest.Digest {
	if !img.IsMoving() {
		return img.Digest
	}
	if l.pinned.digest != "" && img == l.pinned.image {
		return l.pinned.digest
	}
	d, _ := l.digests().lookup(img)
	return d
}

// pinned is the digest of a tag as the registry told it for one binding, or why it did not. No node has
// shown yet that it can run it.
type pinned struct {
	image  imageref.Image
	digest digest.Digest
	err    error
}

// pin asks the registry for the digest of the image if the request needs it. All that follows goes by
// it; without an answer the kubelet looks it up. An image that this node cannot run is a failure: nobody needs to
// pull it to see that.
func (l *lease) pin(ctx context.Context, req payload.BindRequest) *verdict.Failure {
	l.pinned = pinned{}
	ask := l.backend.registry
	img, err := imageref.Parse(req.Image)
	if ask == nil || err != nil || !img.IsMoving() || !req.Pin && !req.Latest {
		return nil // the binding says what is wrong with the name
	}
	if _, known := l.digests().lookup(img); known && !req.Latest {
		return nil
	}
	d, err := ask.Resolve(ctx, img)
	if err != nil {
		l.pinned = pinned{image: img, err: err}
		l.backend.log.Info("the digest of an image is not known before it was pulled", "image", img, "error", err)
		return nil
	}
	// The client keeps the answer for the job's start.
	if _, err := ask.Command(ctx, img, d); errors.Is(err, registry.ErrPlatform) {
		return &verdict.Failure{Origin: verdict.FromRegistry, Reason: verdict.ReasonPlatform, Image: img.String(), Message: err.Error(), Err: err}
	}
	l.pinned = pinned{image: img, digest: d}
	if err := l.digests().learn(img, d); err != nil {
		l.backend.log.Warn("cannot note the digest of an image", "image", img, "error", err)
	}
	return nil
}

// isGuess says whether only a registry's word stands behind a digest.
func (l *lease) isGuess(img imageref.Image, d digest.Digest) bool {
	return l.pinned.digest != "" && d == l.pinned.digest && img == l.pinned.image
}

// survey notes what the pod's spec says about the container.
func (l *lease) survey(pod *corev1.Pod, s *slot) error {
	spec := podapi.SpecOf(pod, l.name)
	if spec == nil {
		return &verdict.Failure{Origin: verdict.FromPod, Reason: verdict.ReasonNoContainer, Message: fmt.Sprintf("pod %s has no container %s", pod.Name, l.name)}
	}
	if s.PodUID != string(pod.UID) {
		*s = slot{PodUID: string(pod.UID)}
	}
	s.Spec, s.Node, s.Sidecar = spec.Image, pod.Spec.NodeName, podapi.IsSidecar(pod, l.name)
	s.DefaultImage = pod.Annotations[podapi.DefaultImageAnnotation+l.name]
	if s.DefaultImage == "" {
		s.DefaultImage = spec.Image
	}
	return nil
}

// recall finds out from which digest the running container of this image was made. It
// waits if the status does not show that container yet.
func (l *lease) recall(ctx context.Context, pod *corev1.Pod, img imageref.Image, s slot) digest.Digest {
	if !l.backend.opt.ThrowawayTags || s.PlainOnly {
		return ""
	}
	if pod.Generation == 1 {
		// The spec is as it was when the pod was created, so whatever has run in the
		// container is this image.
		return l.learn(podapi.StatusOf(pod, l.name), img)
	}
	if s.ContainerID == "" || s.Image != img.String() {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, l.backend.timing.recall)
	defer cancel()
	var found digest.Digest
	l.backend.follow(ctx, pod, func(pod *corev1.Pod) bool {
		status := podapi.StatusOf(pod, l.name)
		if podapi.BareID(status.ContainerID) != s.ContainerID {
			return false
		}
		found = l.learn(status, img)
		return true
	})
	return found
}

// learn notes the digest that a container's status shows for an image. The caller knows
// that the container runs this image.
func (l *lease) learn(status corev1.ContainerStatus, img imageref.Image) digest.Digest {
	d, ok := img.DigestIn(status.ImageID)
	if !ok {
		return ""
	}
	if err := l.digests().learn(img, d); err != nil {
		l.backend.log.Warn("cannot note the digest of an image", "image", img, "error", err)
	}
	return d
}

// get reads the pod, patiently.
func (l *lease) get(ctx context.Context) (*corev1.Pod, error) {
	var pod *corev1.Pod
	err := l.backend.pod.Call(ctx, "get", func(ctx context.Context, api podapi.API) (err error) {
		pod, err = api.Get(ctx)
		return err
	})
	return pod, err
}
