package audit

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/options"
)

// wrapperPath is where deploy/glidein mounts the wrapper's file: a file of /proc that
// no job reads, and that runtimes allow to be mounted over (runc
// libcontainer/rootfs_linux.go:checkProcMount).
const wrapperPath = "/proc/slabinfo"

// checkCommand makes sure that the container runs the wrapper whatever its image.
//
// The runtime mounts volumes into the image one after the other, and then looks up the
// command. Both steps follow the image's symbolic links, but may end in different
// places: another volume may have been mounted in between, and links through /proc/self
// lead elsewhere for a runtime than for the container's first process. So no part of
// the path may come from the image. Only /proc cannot be a link: runtimes refuse to
// mount it elsewhere, and runc refuses to mount anything over it.
func checkCommand(c *corev1.Container, f *findings) {
	if len(c.Command) == 0 {
		return // reported already
	}
	command := c.Command[0] // not cleaned: a component that Clean removes may be a link
	line := "volumeMounts: {name: podstarter-bin, mountPath: " + wrapperPath + ", subPath: " + options.WrapperProgram + ", readOnly: true}"
	if name, below := strings.CutPrefix(command, "/proc/"); !below || name == "" || strings.Contains(name, "/") {
		f.bad(options.KnobContainers, "the command of container %s is %s; a user's image may have a symbolic link on the way there, and what it leads to would run as root. "+
			"Mount the wrapper's file over %s and make that the command", c.Name, command, wrapperPath).
			at(c.Name, "command: ["+wrapperPath+"], "+line)
		return
	}
	for _, m := range c.VolumeMounts {
		if filepath.Clean(m.MountPath) == command && path.Base(m.SubPath) == options.WrapperProgram {
			return
		}
	}
	f.bad(options.KnobContainers, "container %s mounts no file %s at %s, its command", c.Name, options.WrapperProgram, command).at(c.Name, line)
}

// checkClosed makes sure that root of a payload container cannot enter a volume that
// jobs write to: root owns the volume's root directory, whose mode gives its owner no
// permission, and lacks the capability to override that. So neither the container
// runtime nor the wrapper, acting as that root, ever reaches a job's file, wherever an
// image makes the volume be mounted.
func (b *Inspector) checkClosed(pod *corev1.Pod, c *corev1.Container, knob, dir string, f *findings) {
	mount, ok := mountOf(c, dir)
	if !ok || !b.pilotHas(pod, mount.MountPath, place{volume: mount.Name, within: filepath.Join("/", mount.SubPath, mount.SubPathExpr)}) {
		f.bad(knob, "the root of the volume that container %s has at %s cannot be inspected from here; mount it at the same path in the pilot", c.Name, mount.MountPath).
			at(c.Name, "volumeMounts[name="+mount.Name+"]: (the same mountPath and subPath as the pilot's)")
		return
	}
	root := filepath.Clean(mount.MountPath)
	if root == filepath.Clean(dir) {
		f.bad(knob, "is the root of volume %s, which must be closed to root: an image with a symbolic link in the wrong place could have a file of a job "+
			"run as root of container %s. Set it to a directory in the volume, such as %s/jobs; the init container must make it, and chmod 0055 %s",
			mount.Name, c.Name, root, root).
			at("", "initContainers[name=prepare]: (mkdir "+root+"/jobs; chmod 0055 "+root+"), and "+knob+" = "+root+"/jobs")
		return
	}
	info, err := os.Lstat(root)
	if err != nil {
		f.bad(knob, "the root of its volume cannot be inspected: %v", err)
		return
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if mode := info.Mode().Perm(); !ok || !info.IsDir() || int(stat.Uid) != b.Root || mode&0o722 != 0 || mode&0o001 == 0 {
		f.bad(knob, "%s, the root of its volume, must be closed to root and open to others: owner 0, mode 0055. An image with a symbolic link in the wrong place "+
			"could have a file of a job run as root of container %s", root, c.Name).
			at("", "initContainers[name=prepare]: (chown 0:0 "+root+"; chmod 0055 "+root+")")
	}
}

// mountOf finds the mount of a container that a path is on.
func mountOf(c *corev1.Container, path string) (found corev1.VolumeMount, ok bool) {
	for _, m := range c.VolumeMounts {
		if _, below := beneath(filepath.Clean(m.MountPath), filepath.Clean(path)); below && (!ok || len(m.MountPath) > len(found.MountPath)) {
			found, ok = m, true
		}
	}
	return found, ok
}

// auditOthers warns of other volumes that jobs may write to. auditContainer warns of
// directories of the node.
func (b *Inspector) auditOthers(pod *corev1.Pod, c *corev1.Container, what string, r *report) {
	for _, m := range c.VolumeMounts {
		v := volumeOf(pod, m.Name)
		if m.ReadOnly || v == nil || b.isOurs(c, m) || v.HostPath != nil || v.Secret != nil || v.ConfigMap != nil || v.Projected != nil || v.DownwardAPI != nil {
			continue
		}
		r.warn(what, line(c.Name, "volumeMounts[name="+m.Name+"].readOnly: true"), "can write to volume %s; if jobs can write to its root, "+
			"an image can have it mounted where root looks for files: make it read-only, or close its root to root (owner 0, mode 0055)", m.Name)
	}
}

// isOurs says whether other checks look at a mount. A volume at /dev/shm takes the place of
// the pod's own, which jobs can write to as well, and which is mounted in the same way.
func (b *Inspector) isOurs(c *corev1.Container, m corev1.VolumeMount) bool {
	if filepath.Clean(m.MountPath) == sharedMemory {
		return true
	}
	paths := append([]string{b.Options.ControlDir, b.Options.Execute, b.Options.Scratch}, c.Command...)
	return slices.ContainsFunc(paths, func(path string) bool {
		at, ok := mountOf(c, path)
		return path != "" && ok && at.MountPath == m.MountPath
	})
}
