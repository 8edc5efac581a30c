package audit

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
	"podstarter/payload"
)

// checkSpares makes sure that all payload containers are alike: with spares, a slot
// takes any of them that is free. What makes a job fail in one container and not in
// another is a mistake, all else is a warning.
func (b *Inspector) checkSpares(pod *corev1.Pod, f *findings) {
	if b.Options.Spares == 0 {
		return
	}
	var first *corev1.Container
	for _, name := range b.Options.Containers {
		c := podapi.SpecOf(pod, name)
		if c == nil {
			continue // reported already
		}
		checkDevices(c, f)
		if first == nil {
			first = c
			continue
		}
		compareClaims(first, c, f)
		compareResources(first, c, f)
		b.compareMounts(pod, first, c, f)
		compareVariables(first, c, f)
		if !reflect.DeepEqual(fences(first), fences(c)) {
			unlike(f.warn, c, "securityContext: (as in "+first.Name+")", "the securityContext of container %s is not that of %s", c.Name, first.Name)
		}
		if one, other := imageAtFirst(pod, first), imageAtFirst(pod, c); one != other {
			f.warn(options.KnobSpares, "the pod was made with image %s in container %s and %s in %s; a job that names no image gets either, unless %s names one",
				other, c.Name, one, first.Name, "POD_STARTER_DEFAULT_IMAGE").at(c.Name, "image: "+one)
		}
	}
}

// unlike reports that a container is not like the first one.
func unlike(report func(knob, format string, args ...any) where, c *corev1.Container, line, format string, args ...any) {
	report(options.KnobSpares, format+"; with spares a job runs in either: make them equal, or set "+options.KnobSpares+" = 0", args...).at(c.Name, line)
}

// isCommon says whether a resource is no device: any container can have so much of it.
func isCommon(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage:
		return true
	}
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// checkDevices looks for devices, which belong to one container as long as the pod lives.
func checkDevices(c *corev1.Container, f *findings) {
	const no = "container %s has %s, but with spares a slot takes any payload container that is free, and the device stays with its own; take it away, or set " +
		options.KnobSpares + " = 0"
	seen := map[corev1.ResourceName]bool{}
	for _, of := range []struct {
		list corev1.ResourceList
		line string
	}{{c.Resources.Limits, "limits"}, {c.Resources.Requests, "requests"}} {
		for _, name := range slices.Sorted(maps.Keys(of.list)) {
			if !isCommon(name) && !seen[name] {
				seen[name] = true
				f.bad(options.KnobSpares, no, c.Name, name).at(c.Name, "resources."+of.line+"["+string(name)+"]: (remove it)")
			}
		}
	}
	for _, d := range c.VolumeDevices {
		f.bad(options.KnobSpares, no, c.Name, "the block device of volume "+d.Name).at(c.Name, "volumeDevices[name="+d.Name+"]: (remove it)")
	}
}

// compareClaims compares claims of devices. One that all containers have is shared by them.
func compareClaims(first, c *corev1.Container, f *findings) {
	for _, claim := range c.Resources.Claims {
		if !slices.Contains(first.Resources.Claims, claim) {
			unlike(f.bad, c, "resources.claims[name="+claim.Name+"]: (remove it)", "container %s has the device of claim %s, which %s lacks", c.Name, claim.Name, first.Name)
		}
	}
	for _, claim := range first.Resources.Claims {
		if !slices.Contains(c.Resources.Claims, claim) {
			unlike(f.bad, c, "resources.claims[name="+claim.Name+"]: (as in "+first.Name+")", "container %s lacks the device of claim %s of %s", c.Name, claim.Name, first.Name)
		}
	}
}

// compareResources compares all but devices. A request is not what makes a job fail.
func compareResources(first, c *corev1.Container, f *findings) {
	for _, of := range []struct {
		what       string
		one, other corev1.ResourceList
		report     func(knob, format string, args ...any) where
	}{
		{"limit", first.Resources.Limits, c.Resources.Limits, f.bad},
		{"request", first.Resources.Requests, c.Resources.Requests, f.warn},
	} {
		both := maps.Clone(of.one)
		if both == nil {
			both = corev1.ResourceList{}
		}
		maps.Copy(both, of.other)
		for _, name := range slices.Sorted(maps.Keys(both)) {
			one, inOne := of.one[name]
			other, inOther := of.other[name]
			if !isCommon(name) || inOne == inOther && one.Cmp(other) == 0 {
				continue
			}
			has, want, line := "none", "none", "(remove it)"
			if inOther {
				has = other.String()
			}
			if inOne {
				want, line = one.String(), one.String()
			}
			unlike(of.report, c, "resources."+of.what+"s."+string(name)+": "+line, "the %s %s of container %s is %s, and that of %s is %s", name, of.what, c.Name, has, first.Name, want)
		}
	}
}

// compareMounts compares where volumes are mounted. A container's own name in a path,
// as that of its control directory, is no difference, nor are empty volumes of the same
// kind and size, of which each container has its own.
func (b *Inspector) compareMounts(pod *corev1.Pod, first, c *corev1.Container, f *findings) {
	one, other := b.mountsByPath(pod, first), b.mountsByPath(pod, c)
	both := maps.Clone(one)
	maps.Copy(both, other)
	for _, path := range slices.Sorted(maps.Keys(both)) {
		a, inOne := one[path]
		d, inOther := other[path]
		at := strings.ReplaceAll(path, ownName, c.Name)
		line := "volumeMounts[mountPath=" + at + "]: (as in " + first.Name + ")"
		switch {
		case !inOther:
			unlike(f.bad, c, line, "container %s mounts nothing at %s, where %s has volume %s", c.Name, at, first.Name, a.named)
		case !inOne:
			unlike(f.bad, c, "volumeMounts[mountPath="+at+"]: (remove it)", "container %s mounts volume %s at %s, where %s has nothing", c.Name, d.named, at, first.Name)
		case !reflect.DeepEqual(a.mount, d.mount):
			unlike(f.bad, c, line, "container %s mounts volume %s at %s otherwise than %s", c.Name, d.named, at, first.Name)
		}
	}
}

// ownName stands for the container's name in a path. No path of Kubernetes has the byte.
const ownName = "\x00"

// likeMount is a mount without what may differ, and the name of its volume.
type likeMount struct {
	mount corev1.VolumeMount
	named string
}

func (b *Inspector) mountsByPath(pod *corev1.Pod, c *corev1.Container) map[string]likeMount {
	own := func(path string) string {
		parts := strings.Split(path, "/")
		for i, part := range parts {
			if part == c.Name {
				parts[i] = ownName
			}
		}
		return strings.Join(parts, "/")
	}
	mounts := make(map[string]likeMount, len(c.VolumeMounts))
	for _, m := range c.VolumeMounts {
		named := m.Name
		if b.isOfOne(pod, named) {
			m.Name = volumeOf(pod, named).EmptyDir.String()
		}
		m.MountPath, m.SubPath, m.SubPathExpr = own(m.MountPath), own(m.SubPath), own(m.SubPathExpr)
		mounts[m.MountPath] = likeMount{m, named}
	}
	return mounts
}

// isOfOne says whether a volume is an empty directory that one payload container has.
func (b *Inspector) isOfOne(pod *corev1.Pod, volume string) bool {
	v := volumeOf(pod, volume)
	return v != nil && v.EmptyDir != nil && len(b.payloadsWith(pod, volume)) == 1
}

// payloadsWith are the payload containers that mount a volume.
func (b *Inspector) payloadsWith(pod *corev1.Pod, volume string) (names []string) {
	for _, name := range b.Options.Containers {
		c := podapi.SpecOf(pod, name)
		if c != nil && slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume }) {
			names = append(names, name)
		}
	}
	return names
}

// compareVariables compares the names of variables. Values may say which container it is.
func compareVariables(first, c *corev1.Container, f *findings) {
	one, other := variables(first), variables(c)
	for _, v := range other {
		if !slices.Contains(one, v) {
			unlike(f.warn, c, v.line+": (remove it)", "container %s has the %s, which %s lacks", c.Name, v.what, first.Name)
		}
	}
	for _, v := range one {
		if !slices.Contains(other, v) {
			unlike(f.warn, c, v.line+": (as in "+first.Name+")", "container %s lacks the %s of %s", c.Name, v.what, first.Name)
		}
	}
}

// variable is one of a container's environment, or several from one source.
type variable struct{ what, line, prefix string }

func variables(c *corev1.Container) (all []variable) {
	for _, e := range c.Env {
		if e.Name != payload.NonceEnv { // which has a check of its own
			all = append(all, variable{what: "variable " + e.Name, line: "env[name=" + e.Name + "]"})
		}
	}
	for _, from := range c.EnvFrom {
		v := variable{line: "envFrom", prefix: from.Prefix}
		switch {
		case from.ConfigMapRef != nil:
			v.what = "variables of config map " + from.ConfigMapRef.Name
		case from.SecretRef != nil:
			v.what = "variables of secret " + from.SecretRef.Name
		}
		all = append(all, v)
	}
	return all
}

// fences is a container's security context, with capabilities in one order.
func fences(c *corev1.Container) *corev1.SecurityContext {
	if c.SecurityContext == nil {
		return &corev1.SecurityContext{}
	}
	s := c.SecurityContext.DeepCopy()
	if s.Capabilities != nil {
		slices.Sort(s.Capabilities.Add)
		slices.Sort(s.Capabilities.Drop)
	}
	return s
}

// imageAtFirst is the image that the pod was made with.
func imageAtFirst(pod *corev1.Pod, c *corev1.Container) string {
	if image := pod.Annotations[podapi.DefaultImageAnnotation+c.Name]; image != "" {
		return image
	}
	return c.Image
}
