package audit

import (
	"context"
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/imageref"
	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/verdict"
)

// tryPatch makes a dry run.
func (b *Inspector) tryPatch(ctx context.Context, patch any) error {
	api, err := b.Connect()
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

func (b *Inspector) isPayload(container string) bool {
	return slices.Contains(b.Options.Containers, container)
}

// endless is a deadline that no pod meets, in seconds.
const endless = 1 << 30

// auditImages tries the patches that bindings and the end of a pod need, for each
// payload container in turn. They are dry runs.
func (b *Inspector) auditImages(ctx context.Context, pod *corev1.Pod, r *report) {
	const what = "patches"
	before := len(r.found)
	var images []map[string]string
	nonces := map[string]string{}
	for _, name := range b.Options.Containers {
		spec := podapi.SpecOf(pod, name)
		if spec == nil {
			continue
		}
		text := pod.Annotations[podapi.DefaultImageAnnotation+name]
		if text == "" {
			text = spec.Image
		}
		img, err := imageref.Parse(text)
		if err != nil {
			r.bad(what, line(name, "image"), "the image that the pod was created with, %q, %v", text, err)
			continue
		}
		// A tag that the image does not have now, so that policies on changes see a
		// change.
		changed := img.Repository + ":podstarter-check"
		images = append(images, map[string]string{"name": name, "image": changed})
		nonces[podapi.NonceAnnotation+name] = "podstarter-check"
		if err := b.tryPatch(ctx, containerImage(name, changed)); err != nil {
			r.bad(what, "the cluster's policies on images, or "+line(name, "image"), "images like the one that the pod was created with, %s, are refused in container %s: %s", text, name, verdict.OfAPI(err).Message)
			continue
		}
		if !b.Options.ThrowawayTags {
			continue
		}
		if err := b.tryPatch(ctx, containerImage(name, img.Once("podstarter-check", sampleDigest))); err != nil {
			r.warn(what, options.KnobThrowawayTags+" = False", "the form name:tag@digest is refused in container %s: %s", name, verdict.OfAPI(err).Message)
		}
	}
	if b.Options.Spares > 0 && len(r.found) == before {
		// Several containers are made anew by one patch. It names them in the order of the
		// pod: a strategic merge patch puts what it names into its own order
		// (strategicpatch/patch.go:normalizeElementOrder), which must not change.
		names := containerNames(pod)
		slices.SortFunc(images, func(a, b map[string]string) int {
			return slices.Index(names, a["name"]) - slices.Index(names, b["name"])
		})
		all := map[string]any{"metadata": map[string]any{"annotations": nonces}, "spec": map[string]any{"containers": images}}
		if err := b.tryPatch(ctx, all); err != nil {
			r.bad(what, "the cluster's policies, or "+options.KnobSpares+" = 0", "one patch may not change several payload containers: %s", verdict.OfAPI(err).Message)
		}
	}
	seconds := int64(endless)
	if pod.Spec.ActiveDeadlineSeconds != nil {
		seconds = *pod.Spec.ActiveDeadlineSeconds
	}
	if err := b.tryPatch(ctx, map[string]any{"spec": map[string]any{"activeDeadlineSeconds": seconds}}); err != nil {
		r.warn(what, "the cluster's policy", "the pilot may not set activeDeadlineSeconds, and so not end its pod: %s", verdict.OfAPI(err).Message)
	}
	if len(r.found) == before {
		r.ok(what, "images of %s, plain and with a throw-away tag, and the end of the pod are let through", plural(b.Options.Containers))
	}
}

// sampleDigest is a digest that no image has.
const sampleDigest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
