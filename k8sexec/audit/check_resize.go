package audit

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
	"podstarter/k8sexec/verdict"
)

// The annotations of a pod that say how much a payload container may get at most
// (deploy/policy). No pilot may change them.
const (
	mostCPU    = "resize.podstarter/cpu"
	mostMemory = "resize.podstarter/memory"
)

// resizeComponent has all that a change of limits needs.
const resizeComponent = "components: [../components/resize]"

// checkResize makes sure that the limits of payload containers can be changed, if they are to be.
func (b *Inspector) checkResize(ctx context.Context, pod *corev1.Pod, f *findings) {
	api, err := b.Connect()
	if !b.Options.Resize || err != nil {
		return
	}
	if pod.Status.QOSClass == corev1.PodQOSGuaranteed {
		f.bad(options.KnobResize, "is True, but all containers of the pod request their limits, and Kubernetes lets no pod change from one QoS class to another; let the pilot request less than its limits").
			at("", "containers[name=pilot].resources.requests: (less than its limits)")
		return
	}
	for _, name := range b.Options.Containers {
		c := podapi.SpecOf(pod, name)
		if c == nil {
			continue // reported already
		}
		for _, p := range c.ResizePolicy {
			if p.RestartPolicy != corev1.NotRequired {
				f.bad(options.KnobResize, "is True, but the resizePolicy of container %s has it restarted when its limit of %s changes, which could be while a job begins", name, p.ResourceName).
					at(name, "resizePolicy[resourceName="+string(p.ResourceName)+"].restartPolicy: NotRequired")
			}
		}
		patch, err := podapi.ResizePatch(name, podapi.IsSidecar(pod, name), podapi.LimitsOf(c.Resources.Limits))
		if err == nil {
			_, err = api.Resize(ctx, patch, true)
		}
		if err != nil {
			f.bad(options.KnobResize, "is True, but the limits of container %s cannot be changed; add %s to the glidein's kustomization, and the deploy/policy of this version to the cluster: %s",
				name, resizeComponent, verdict.OfAPI(err).Message).knobTo(resizeComponent)
			return
		}
	}
}

// checkMost compares the largest slot with what the policy lets a payload container get.
func (b *Inspector) checkMost(pod *corev1.Pod, job options.Size, f *findings) {
	for _, r := range []struct {
		annotation, has string
		offered         resource.Quantity
	}{
		{mostCPU, "CPUs", *resource.NewMilliQuantity(int64(job.CPUs*1000), resource.DecimalSI)},
		{mostMemory, "memory", *resource.NewQuantity(job.MemoryMB*bytesPerMB, resource.BinarySI)},
	} {
		text, given := pod.Annotations[r.annotation]
		if !given {
			continue // a site's own policy
		}
		if most, err := resource.ParseQuantity(text); err != nil || most.Cmp(r.offered) < 0 {
			f.warn(options.KnobResize, "a job can get a slot with %s %s, but the pod's annotation %s lets its container have %q: such jobs go back to the queue", r.has, r.offered.String(), r.annotation, text).
				knobTo("metadata.annotations: {" + r.annotation + ": \"" + r.offered.String() + "\"}")
		}
	}
}
