package k8sexec

import (
	"context"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// tryPatch makes a dry run.
func (b *Backend) tryPatch(ctx context.Context, patch any) error {
	api, err := b.connect()
	if err != nil {
		return err
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = api.Patch(ctx, data, true)
	return err
}

func (b *Backend) isPayload(container string) bool {
	return slices.Contains(b.opt.Containers, container)
}

// endless is a deadline that no pod meets, in seconds.
const endless = 1 << 30

// auditImages tries the patches that bindings and the end of a pod need, each
// payload container by itself. They are dry runs.
func (b *Backend) auditImages(ctx context.Context, pod *corev1.Pod, r *report) {
	const what = "patches"
	before := len(r.found)
	for _, name := range b.opt.Containers {
		spec := specOf(pod, name)
		if spec == nil {
			continue
		}
		text := pod.Annotations[defaultImageAnnotation+name]
		if text == "" {
			text = spec.Image
		}
		img, err := parseImage(text)
		if err != nil {
			r.bad(what, line(name, "image"), "the image that the pod was created with, %q, %v", text, err)
			continue
		}
		// A tag that the image does not have now, so that policies on changes see one.
		if err := b.tryPatch(ctx, containerImage(name, img.repository+":podstarter-check")); err != nil {
			r.bad(what, "the cluster's policies on images, or "+line(name, "image"), "images like the one that the pod was created with, %s, are refused in container %s: %s", text, name, apiFailure(err).message)
			continue
		}
		if !b.opt.ThrowawayTags {
			continue
		}
		if err := b.tryPatch(ctx, containerImage(name, img.once("podstarter-check", sampleDigest))); err != nil {
			r.warn(what, knobThrowawayTags+" = False", "the form name:tag@digest is refused in container %s: %s", name, apiFailure(err).message)
		}
	}
	seconds := int64(endless)
	if pod.Spec.ActiveDeadlineSeconds != nil {
		seconds = *pod.Spec.ActiveDeadlineSeconds
	}
	if err := b.tryPatch(ctx, map[string]any{"spec": map[string]any{"activeDeadlineSeconds": seconds}}); err != nil {
		r.warn(what, "the cluster's policy", "the pilot may not set activeDeadlineSeconds, and so not end its pod: %s", apiFailure(err).message)
	}
	if len(r.found) == before {
		r.ok(what, "images of %s, plain and with a throw-away tag, and the end of the pod are let through", plural(b.opt.Containers))
	}
}

// sampleDigest is the digest of no image.
const sampleDigest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
