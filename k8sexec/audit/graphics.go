package audit

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/options"
)

// nvidiaDomain begins the names of NVIDIA's resources, gpu, gpu.shared and mig-1g.5gb for example.
const nvidiaDomain = "nvidia.com/"

// gpuDomains begin the names of resources that are graphics processors or parts of them:
// amd.com/gpu, gpu.intel.com/i915, gpu.intel.com/xe.
var gpuDomains = []string{nvidiaDomain, "amd.com/", "gpu.intel.com/"}

// gpusOf are the resources of a container that are graphics processors.
func gpusOf(c *corev1.Container) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(c.Resources.Limits)) {
		if slices.ContainsFunc(gpuDomains, func(domain string) bool { return strings.HasPrefix(string(name), domain) }) {
			found = append(found, string(name))
		}
	}
	return found
}

// mayHaveDevice says whether a container asks for a device of any kind.
func mayHaveDevice(c *corev1.Container) bool {
	for name := range c.Resources.Limits {
		if !isCommon(name) {
			return true
		}
	}
	return len(c.Resources.Claims) > 0
}

// auditGraphics compares what a container asks for with what the startd is told of, and looks
// at the variable by which NVIDIA's container runtime chooses devices.
//
//   - Images for graphics processors carry NVIDIA_VISIBLE_DEVICES=all, which a runtime may obey
//     for containers that asked for none (NVIDIA/k8s-device-plugin#87). So those say void.
//   - A variable of the manifest replaces the device plugin's
//     (kubelet_pods.go:GenerateRunContainerOptions). So a container that asks for a device
//     must not have it.
func (b *Inspector) auditGraphics(c *corev1.Container, what string, r *report) {
	const variable = "NVIDIA_VISIBLE_DEVICES"
	gpus, named := gpusOf(c), slices.Contains(b.Options.GPUContainers, c.Name)
	switch {
	case named && !mayHaveDevice(c):
		r.bad(what, line(c.Name, "resources.limits[nvidia.com/gpu]: 1, or "+options.KnobGPUContainers), "is said to have GPUs, but asks for no device")
	case !named && len(gpus) > 0:
		r.warn(what, options.KnobGPUContainers, "has %s, which no job gets: the startd is not told of it", strings.Join(gpus, ", "))
	}
	i := slices.IndexFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == variable })
	none := i >= 0 && (c.Env[i].Value == "void" || c.Env[i].Value == "none")
	switch nvidia := slices.ContainsFunc(gpus, func(name string) bool { return strings.HasPrefix(name, nvidiaDomain) }); {
	case nvidia && i >= 0:
		r.bad(what, line(c.Name, "env[name="+variable+"]: (remove it)"), "asks for %s, but its variable %s replaces the one by which the device plugin says which it gets", strings.Join(gpus, ", "), variable)
	case nvidia, none, len(c.Resources.Claims) > 0 && i < 0:
	default:
		r.warn(what, line(c.Name, "env[name="+variable+"].value: void"), "images with %s=all may get graphics processors that the pod did not request", variable)
	}
}
