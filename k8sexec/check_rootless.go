package k8sexec

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
)

// identity is who the pilot is.
type identity struct {
	uid, gid int
	groups   []int // supplementary
}

func ownIdentity() identity {
	groups, _ := os.Getgroups() // none, then: which the check says
	return identity{os.Geteuid(), os.Getegid(), groups}
}

func (i identity) isRoot() bool { return i.uid == 0 }

// mayEnter tells whether a group lets the pilot in and keeps its payload out,
// which has the pilot's user and first group.
func (i identity) mayEnter(group int) bool {
	return group != 0 && group != i.gid && slices.Contains(i.groups, group)
}

// checkRootless looks at what keeps a payload apart from a pilot with the same
// user ID: nothing but namespaces, and what is mounted where.
func (b *Backend) checkRootless(pod *corev1.Pod, f *findings) {
	if shares := pod.Spec.ShareProcessNamespace; shares != nil && *shares || pod.Spec.HostPID {
		f.bad(knobBackend, "the pod's containers share a PID namespace, but the pilot is user %d and not root, and so is its job, "+
			"which could trace and kill it; set shareProcessNamespace and hostPID to false, or let the pilot be root", b.self.uid)
	}
	if len(b.opt.Containers) > 1 {
		f.bad(knobContainers, "names %d payload containers, but the pilot is user %d and not root, and so are its jobs: "+
			"they could reach each other through /dev/shm, which a pod has once; name one, and make more pods", len(b.opt.Containers), b.self.uid)
	}
	if b.opt.Scratch == "" {
		f.bad(knobScratchDir, "is empty, but the pilot is user %d and not root, and so is its job, which must not get at %s; "+
			"mount a volume for sandboxes in both containers and name its directory here", b.self.uid, knobExecute)
	}
	for _, name := range b.opt.Containers {
		c := specOf(pod, name)
		if c == nil {
			continue // said elsewhere
		}
		b.checkPilotFlag(c, f)
		b.checkApart(pod, c, f)
	}
}

// checkPilotFlag makes sure that the wrapper knows whom to let in.
func (b *Backend) checkPilotFlag(c *corev1.Container, f *findings) {
	var args []string
	if len(c.Command) > 0 {
		args = c.Command[1:]
	}
	text := flagValue(append(slices.Clip(args), c.Args...), "pilot")
	user, group, _ := strings.Cut(text, ":")
	gid, err := strconv.Atoi(group)
	switch {
	case user != strconv.Itoa(b.self.uid) || err != nil:
		f.bad(knobControlDir, "container %s must have the arguments -pilot %d:GROUP, with a group of the pod's supplementalGroups; it has %s",
			c.Name, b.self.uid, quoted(c.Args))
	case !b.self.mayEnter(gid):
		f.bad(knobControlDir, "group %d in the arguments of container %s must be one of supplementalGroups and not the pilot's first group %d, "+
			"which its job has as well; the pilot's others are %v", gid, c.Name, b.self.gid, b.self.groups)
	}
}

// flagValue finds the value of -name value or -name=value, with one dash or two.
func flagValue(args []string, name string) string {
	for i, arg := range args {
		bare := strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-")
		if bare == name && bare != arg && i+1 < len(args) {
			return args[i+1]
		}
		if given, found := strings.CutPrefix(bare, name+"="); found && bare != arg {
			return given
		}
	}
	return ""
}

// checkApart makes sure that nothing of the pilot's is mounted where its payload
// could write to it, but for the two directories that are made for that.
func (b *Backend) checkApart(pod *corev1.Pod, c *corev1.Container, f *findings) {
	allowed := make(map[string]bool)
	for _, path := range []string{b.opt.ControlDir, b.opt.Scratch} {
		if at, ok := placeOf(c, path); ok && path != "" {
			allowed[at.volume] = true
		}
	}
	for i := range pod.Spec.Containers {
		pilot := &pod.Spec.Containers[i]
		if slices.Contains(b.opt.Containers, pilot.Name) {
			continue
		}
		for _, mine := range c.VolumeMounts {
			if !allowed[mine.Name] && !mine.ReadOnly && mounts(pilot, mine.Name) {
				f.bad(knobScratchDir, "containers %s and %s both mount volume %s; the pilot is user %d like its job, "+
					"so that they may share nothing but %s and the control directory", pilot.Name, c.Name, mine.Name, b.self.uid, knobScratchDir)
			}
		}
		if scratch, ok := placeOf(pilot, b.opt.Scratch); ok && b.opt.Scratch != "" {
			if at, ok := placeOf(pilot, b.opt.Execute); ok && at.volume == scratch.volume {
				f.bad(knobExecute, "is on volume %s, like %s, where the job could put links in place of the startd's files; give it another volume", at.volume, knobScratchDir)
			}
		}
	}
}

func mounts(c *corev1.Container, volume string) bool {
	return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume })
}

// checkGroupDirectory looks at a control directory that the pilot enters by one
// of its groups.
func (b *Backend) checkGroupDirectory(path string, info os.FileInfo, f *findings) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	mode := info.Mode().Perm()
	if !ok || !info.IsDir() || stat.Uid != 0 || mode&0o027 != 0 || mode&0o050 != 0o050 || !b.self.mayEnter(int(stat.Gid)) {
		f.bad(knobControlDir, "%s must be a directory of root with mode 0750, of one of supplementalGroups %v of the pod that is not the pilot's first group %d: "+
			"its job is user %d too, and must not enter", path, b.self.groups, b.self.gid, b.self.uid)
	}
}
