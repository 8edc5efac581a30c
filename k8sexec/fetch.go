package k8sexec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"

	"podstarter/k8sexec/imageref"
	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/puller"
	"podstarter/k8sexec/verdict"
	"podstarter/payload"
)

// keptFor is how long after its last use here an image counts as being on the node. If
// the kubelet removed it sooner, its pull keeps the pod's other slots waiting. The
// kubelet removes images only when the disk is full, and those unused for the longest
// time first (images/image_gc_manager.go).
const keptFor = time.Hour

// fetch has a puller get the image onto the node, unless it is there already. The hold,
// which is never nil without an error, keeps it there until the payload container has it.
// Errors are *verdict.Failure or the cause of ctx's end.
func (l *lease) fetch(ctx context.Context, req payload.BindRequest) (*puller.Hold, error) {
	b := l.backend
	none := &puller.Hold{}
	l.fetched = 0
	if len(b.opt.Pullers) == 0 {
		return none, nil
	}
	known, err := readSlot(l.private, l.name)
	if err != nil || isDefault(req) && known.DefaultImage == "" {
		return none, nil // the pod has just begun with its default image
	}
	img, err := l.wanted(req.Image, known)
	if err != nil || l.mayReuse(req.Owner, img, contents(req), known) || l.isReady(img, known) || l.isOnNode(img) {
		return none, nil //nolint:nilerr // the binding says what is wrong with the name
	}
	began := time.Now()
	var hold *puller.Hold
	for _, spec := range l.forms(req, img, known) {
		hold, err = b.pullers.Fetch(ctx, puller.Request{
			Image: img, Spec: spec, Report: req.Report, There: func() bool { return l.isOnNode(img) },
			Node: func(ctx context.Context) (string, error) { return l.node(ctx, known) },
		})
		f := (*verdict.Failure)(nil)
		if !errors.As(err, &f) {
			break
		}
		if j := verdict.Judge(*f); spec == img.String() || !j.Form && !(j.Digest && img.IsMoving()) && !(l.isGuess(img, l.pinned.digest) && f.IsPull()) {
			break
		}
		l.pinned = pinned{} // the kubelet's word counts
		b.log.Warn("image refused in this form, trying it as it was asked for", "image", spec, "error", err)
		if err := l.digests().forget(img); err != nil {
			b.log.Warn("cannot forget a digest", "image", img, "error", err)
		}
	}
	switch {
	case errors.Is(err, puller.ErrNone):
		b.log.Warn("the payload container pulls its image itself, and other slots of the pod wait for that", "container", l.name, "image", img, "error", err)
		req.Report(fmt.Sprintf("container %s pulls %s itself: %v", l.name, img, err))
		return none, nil
	case err != nil:
		return nil, err
	}
	if hold.Digest != "" && img.IsMoving() {
		if err := l.digests().learn(img, hold.Digest); err != nil {
			b.log.Warn("cannot note the digest of an image", "image", img, "error", err)
		}
	}
	l.warmed(req.Written, img, hold.Digest)
	l.fetched = time.Since(began)
	return hold, nil
}

// forms are the image strings to try, one after the other.
func (l *lease) forms(req payload.BindRequest, img imageref.Image, known slot) []string {
	d := l.digestFor(img)
	if d == "" || !l.backend.opt.ThrowawayTags || known.PlainOnly {
		return []string{img.String()}
	}
	return []string{img.Once(imageref.OnceTag(req.Activation, podapi.NewNonce()), d), img.String()}
}

// hasRun reports whether an image has run in this pod before, so that no pull is expected.
func (l *lease) hasRun(img imageref.Image, podsOwn string) bool {
	d, name := l.digestFor(img), img.String()
	if own, err := imageref.Parse(podsOwn); err == nil && own.String() == name {
		return true
	}
	return slices.ContainsFunc(l.readWarm(), func(w warmImage) bool {
		return w.Name == name && (d == "" || w.Digest == "" || w.Digest == d)
	})
}

// isOnNode says whether an image has run here lately.
func (l *lease) isOnNode(img imageref.Image) bool {
	d, name := l.digestFor(img), img.String()
	for _, w := range l.readWarm() {
		if w.Name == name && (d == "" || w.Digest == "" || w.Digest == d) && time.Since(w.Used) < keptFor {
			return true
		}
	}
	return false
}

// stillThere notes that the image that the container has until now is on the node.
func (l *lease) stillThere(before slot) {
	text, d := before.Image, digestIn(before.Spec)
	if text == "" && before.Spec == before.DefaultImage {
		text = before.DefaultImage
	}
	if img, err := imageref.Parse(text); err == nil && len(l.backend.opt.Pullers) > 0 {
		l.warmed("", img, d)
	}
}

// node is the name of the pilot's node.
func (l *lease) node(ctx context.Context, known slot) (string, error) {
	if known.Node != "" {
		return known.Node, nil
	}
	pod, err := l.get(ctx)
	if err != nil {
		return "", err
	}
	return pod.Spec.NodeName, nil
}

// mayReuse says whether the policy allows to use the container again as it is.
func (l *lease) mayReuse(owner string, img imageref.Image, files string, known slot) bool {
	return l.backend.opt.Reset == options.ResetImage && known.Nonce != "" && !known.Fresh && owner != "" && known.Owner == owner &&
		known.Image == img.String() && known.Files == files && files != unknownFiles && l.stillCurrent(img, known)
}

// digestIn is the digest of an image string; empty if it has none.
func digestIn(spec string) digest.Digest {
	img, err := imageref.Parse(spec)
	if err != nil {
		return ""
	}
	return img.Digest
}
