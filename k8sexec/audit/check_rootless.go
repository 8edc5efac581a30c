package audit

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/options"
	"podstarter/k8sexec/podapi"
)

// Identity is who the pilot is.
type Identity struct {
	UID, GID int
	Groups   []int // supplementary
}

// OwnIdentity is the identity of this process.
func OwnIdentity() Identity {
	groups, _ := os.Getgroups() // after an error none, which the check reports
	return Identity{os.Geteuid(), os.Getegid(), groups}
}

// IsRoot says whether the pilot may give files to its payloads' users.
func (i Identity) IsRoot() bool { return i.UID == 0 }

// mayEnter says whether a group lets the pilot in and keeps its payload out. The
// payload has the pilot's user and first group.
func (i Identity) mayEnter(group int) bool {
	return group != 0 && group != i.GID && slices.Contains(i.Groups, group)
}

// checkRootless checks what separates a payload from a pilot with the same user ID:
// only namespaces, and which volume is mounted where.
func (b *Inspector) checkRootless(pod *corev1.Pod, f *findings) {
	if shares := pod.Spec.ShareProcessNamespace; shares != nil && *shares || pod.Spec.HostPID {
		f.bad(options.KnobBackend, "the pod's containers share a PID namespace, but the pilot is user %d and not root, and so is its job, "+
			"which could trace and kill it; set shareProcessNamespace and hostPID to false, or let the pilot be root", b.Self.UID)
	}
	if len(b.Options.Containers) > 1 {
		f.bad(options.KnobContainers, "names %d payload containers, but the pilot is user %d and not root, and so are its jobs: "+
			"they could reach each other's shared memory, since the containers of a pod have one IPC namespace; name one, and make more pods", len(b.Options.Containers), b.Self.UID)
	}
	if b.Options.Scratch == "" {
		f.bad(options.KnobScratchDir, "is empty, but the pilot is user %d and not root, and so is its job, which must not get at %s; "+
			"mount a volume for sandboxes in both containers and name its directory here", b.Self.UID, options.KnobExecute)
	}
	for _, name := range b.Options.Containers {
		c := podapi.SpecOf(pod, name)
		if c == nil {
			continue // reported elsewhere
		}
		b.checkPilotFlag(c, f)
		b.checkApart(pod, c, f)
	}
}

// checkPilotFlag makes sure that the wrapper knows which user and group to let in.
func (b *Inspector) checkPilotFlag(c *corev1.Container, f *findings) {
	var args []string
	if len(c.Command) > 0 {
		args = c.Command[1:]
	}
	text := flagValue(append(slices.Clip(args), c.Args...), "pilot")
	user, group, _ := strings.Cut(text, ":")
	gid, err := strconv.Atoi(group)
	switch {
	case user != strconv.Itoa(b.Self.UID) || err != nil:
		f.bad(options.KnobControlDir, "container %s must have the arguments -pilot %d:GROUP, with a group of the pod's supplementalGroups; it has %s",
			c.Name, b.Self.UID, quoted(c.Args))
	case !b.Self.mayEnter(gid):
		f.bad(options.KnobControlDir, "group %d in the arguments of container %s must be one of supplementalGroups and not the pilot's first group %d, "+
			"which its job has as well; the pilot's others are %v", gid, c.Name, b.Self.GID, b.Self.Groups)
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

// checkApart makes sure that the payload cannot write to any volume of the pilot,
// except the two directories that they share on purpose.
func (b *Inspector) checkApart(pod *corev1.Pod, c *corev1.Container, f *findings) {
	allowed := make(map[string]bool)
	for _, path := range []string{b.Options.ControlDir, b.Options.Scratch} {
		if at, ok := placeOf(c, path); ok && path != "" {
			allowed[at.volume] = true
		}
	}
	for _, pilot := range podapi.Containers(pod) {
		if slices.Contains(b.Options.Containers, pilot.Name) {
			continue
		}
		for _, mine := range c.VolumeMounts {
			if !allowed[mine.Name] && !mine.ReadOnly && mounts(pilot, mine.Name) {
				f.bad(options.KnobScratchDir, "containers %s and %s both mount volume %s; the pilot is user %d like its job, "+
					"so they may share only %s and the control directory", pilot.Name, c.Name, mine.Name, b.Self.UID, options.KnobScratchDir)
			}
		}
		if scratch, ok := placeOf(pilot, b.Options.Scratch); ok && b.Options.Scratch != "" {
			if at, ok := placeOf(pilot, b.Options.Execute); ok && at.volume == scratch.volume {
				f.bad(options.KnobExecute, "is on volume %s, like %s, where the job could put links in place of the startd's files; give it another volume", at.volume, options.KnobScratchDir)
			}
		}
	}
}

func mounts(c *corev1.Container, volume string) bool {
	return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == volume })
}

// checkGroupDirectory checks a control directory that one of the pilot's groups lets it
// enter.
func (b *Inspector) checkGroupDirectory(path string, info os.FileInfo, f *findings) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	mode := info.Mode().Perm()
	if !ok || !info.IsDir() || stat.Uid != 0 || mode&0o027 != 0 || mode&0o050 != 0o050 || !b.Self.mayEnter(int(stat.Gid)) {
		f.bad(options.KnobControlDir, "%s must be a directory of root with mode 0750, of one of supplementalGroups %v of the pod that is not the pilot's first group %d: "+
			"its job is user %d too, and must not enter", path, b.Self.Groups, b.Self.GID, b.Self.UID)
	}
}
