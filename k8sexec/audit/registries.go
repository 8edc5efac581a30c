package audit

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/imageref"
	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/registry"
)

// auditRegistries asks the registries of the pod's own images what these run by themselves, as the
// starter will ask for jobs.
func (b *Inspector) auditRegistries(ctx context.Context, pod *corev1.Pod, r *report) {
	const what = "registries"
	ask := b.Registry
	if ask == nil {
		r.ok(what, "none is asked: the entry points of images do not run, and jobs without an executable are held")
		return
	}
	var asked []string
	for _, name := range b.Options.Containers {
		text := pod.Annotations[podapi.DefaultImageAnnotation+name]
		if spec := podapi.SpecOf(pod, name); text == "" && spec != nil {
			text = spec.Image
		}
		img, err := imageref.Parse(text)
		host, _, _ := strings.Cut(img.Repository, "/")
		if err != nil || slices.Contains(asked, host) {
			continue
		}
		asked = append(asked, host)
		d, err := ask.Resolve(ctx, img)
		if err == nil {
			_, err = ask.Command(ctx, img, d)
		}
		if err != nil {
			r.warn(what, registry.KnobAuth+", or "+registry.KnobAsk+" = False", "%s does not say what images run by themselves, so that their entry points do not run: %v", host, err)
			continue
		}
		r.ok(what, "%s says what images run by themselves", host)
	}
}
