package audit

import (
	"cmp"
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

// auditImages tries the patches that bindings and the end of a pod need. They are dry
// runs.
func (b *Inspector) auditImages(ctx context.Context, pod *corev1.Pod, r *report) {
	const what = "patches"
	before := len(r.found)
	var plain, once []podapi.Binding
	texts := map[string]string{}
	// The order of a patch must be that of the pod; see [Inspector.tryChanges].
	for _, c := range podapi.Containers(pod) {
		name := c.Name
		if !b.isPayload(name) {
			continue
		}
		text := imageAtFirst(pod, c)
		img, err := imageref.Parse(text)
		if err != nil {
			r.bad(what, line(name, "image"), "the image that the pod was created with, %q, %v", text, err)
			continue
		}
		texts[name] = text
		// A tag that the image does not have now, so that policies on changes see a
		// change.
		try := podapi.Binding{Container: name, Spec: img.Repository + ":podstarter-check", Nonce: "podstarter-check", Sidecar: podapi.IsSidecar(pod, name)}
		plain = append(plain, try)
		try.Spec = img.Once("podstarter-check", sampleDigest)
		once = append(once, try)
	}
	together := b.tryEach(ctx, plain, func(name string, err error) {
		once = slices.DeleteFunc(once, func(c podapi.Binding) bool { return c.Container == name })
		r.bad(what, "the cluster's policies on images, or "+line(name, "image"), "images like the one that the pod was created with, %s, are refused in container %s: %s", texts[name], name, verdict.OfAPI(err).Message)
	})
	if b.Options.ThrowawayTags {
		err := b.tryEach(ctx, once, func(name string, err error) {
			r.warn(what, options.KnobThrowawayTags+" = False", "the form name:tag@digest is refused in container %s: %s", name, verdict.OfAPI(err).Message)
		})
		together = cmp.Or(together, err)
	}
	if b.Options.Spares > 0 && together != nil {
		r.bad(what, "the cluster's policies, or "+options.KnobSpares+" = 0", "one patch may not change several payload containers: %s", verdict.OfAPI(together).Message)
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

// tryEach tries a change of each container: of all at once, and if that is refused, one
// by one. It calls refused for each that is refused by itself. If none is, it returns why
// all together are.
func (b *Inspector) tryEach(ctx context.Context, changes []podapi.Binding, refused func(container string, err error)) error {
	together := b.tryChanges(ctx, changes)
	if together == nil {
		return nil
	}
	single := false
	for _, c := range changes {
		if err := b.tryChanges(ctx, []podapi.Binding{c}); err != nil {
			single = true
			refused(c.Container, err)
		}
	}
	if single {
		return nil
	}
	return together
}

// tryChanges is a dry run of one patch, as bindings make it. It names containers in the
// order of the pod: a strategic merge patch puts what it names into its own order
// (strategicpatch/patch.go:normalizeElementOrder), which no update of a pod may change.
func (b *Inspector) tryChanges(ctx context.Context, changes []podapi.Binding) error {
	if len(changes) == 0 {
		return nil
	}
	patch, err := podapi.BindingPatch(changes...)
	if err != nil {
		return err
	}
	return b.tryPatch(ctx, json.RawMessage(patch))
}

// sampleDigest is a digest that no image has.
const sampleDigest = "sha256:0000000000000000000000000000000000000000000000000000000000000000"
