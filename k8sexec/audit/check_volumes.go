package audit

import (
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
)

// place is where a path of a container leads: a volume and a path within it.
type place struct {
	volume   string
	within   string
	readOnly bool
}

// placeOf finds the volume that a path of a container is on. The longest mount
// path wins, as in the kernel.
func placeOf(c *corev1.Container, path string) (place, bool) {
	path = filepath.Clean(path)
	best := -1
	var found place
	for _, m := range c.VolumeMounts {
		at := filepath.Clean(m.MountPath)
		rest, below := beneath(at, path)
		if !below || len(at) <= best {
			continue
		}
		best = len(at)
		found = place{volume: m.Name, within: filepath.Join("/", m.SubPath, m.SubPathExpr, rest), readOnly: m.ReadOnly}
	}
	return found, best >= 0
}

// beneath says whether path is dir or below it, and gives the rest.
func beneath(dir, path string) (rest string, ok bool) {
	if path == dir {
		return "", true
	}
	return strings.CutPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// checkVolumes makes sure that pilot and payload container share the volumes that they
// must share, at the same paths, and that the private directory is not shared.
func (b *Inspector) checkVolumes(pod *corev1.Pod, c *corev1.Container, f *findings) {
	shared := []struct{ knob, path string }{{options.KnobControlDir, filepath.Join(b.Options.ControlDir, c.Name)}}
	if b.Options.Scratch != "" {
		shared = append(shared, struct{ knob, path string }{options.KnobScratchDir, b.Options.Scratch})
	} else if b.Options.Execute != "" {
		shared = append(shared, struct{ knob, path string }{options.KnobExecute, b.Options.Execute})
	}
	for _, s := range shared {
		here, ok := placeOf(c, s.path)
		switch {
		case !ok:
			f.bad(s.knob, "container %s mounts no volume at %s; mount the one there that the pilot has there", c.Name, s.path).
				at(c.Name, "volumeMounts: (the volume that the pilot has at "+s.path+")")
		case here.readOnly:
			f.bad(s.knob, "container %s mounts %s read-only", c.Name, s.path).
				at(c.Name, "volumeMounts[name="+here.volume+"].readOnly: false")
		case !b.pilotHas(pod, s.path, here):
			f.bad(s.knob, "container %s has volume %s at %s, but the pilot has not; mount the same volume at the same path in both", c.Name, here.volume, s.path).
				at(c.Name, "volumeMounts: (the volume that the pilot has at "+s.path+")")
		case s.knob != options.KnobControlDir:
			b.checkClosed(pod, c, s.knob, s.path, f)
		}
	}
	b.checkPrivate(pod, c, f)
	if len(c.Command) > 0 {
		if at, ok := placeOf(c, c.Command[0]); ok && !at.readOnly {
			f.bad(options.KnobContainers, "container %s mounts the wrapper's volume %s writable; set readOnly, or a job that gets at it owns the next one", c.Name, at.volume).
				at(c.Name, "volumeMounts[name="+at.volume+"].readOnly: true")
		}
	}
}

// pilotHas looks for the same place at the same path in a container that is not a
// payload container. If there are several, the pilot cannot tell which one it is.
func (b *Inspector) pilotHas(pod *corev1.Pod, path string, want place) bool {
	for _, c := range podapi.Containers(pod) {
		if slices.Contains(b.Options.Containers, c.Name) {
			continue
		}
		if at, ok := placeOf(c, path); ok && at.volume == want.volume && at.within == want.within {
			return true
		}
	}
	return false
}

// checkPrivate makes sure that the private directory's volume is not mounted anywhere
// in the payload container.
func (b *Inspector) checkPrivate(pod *corev1.Pod, c *corev1.Container, f *findings) {
	for _, pilot := range podapi.Containers(pod) {
		if slices.Contains(b.Options.Containers, pilot.Name) {
			continue
		}
		private, ok := placeOf(pilot, b.Options.PrivateDir)
		if !ok {
			continue
		}
		for _, m := range c.VolumeMounts {
			if m.Name == private.volume {
				f.bad(options.KnobPrivateDir, "container %s mounts volume %s, on which %s is; give that a volume of the pilot's own", c.Name, m.Name, b.Options.PrivateDir).
					at(c.Name, "volumeMounts[name="+m.Name+"]: (remove it)")
			}
		}
	}
}
