package verdict

import (
	"fmt"

	"podstarter/k8sexec/options"
)

// onWrapper is part of what a runtime says when the wrapper's file cannot be mounted
// (see package audit), for example because it is missing: the kubelet then makes a
// directory of its name. Volumes that an image declares below /proc cause the same
// message.
const onWrapper = `to rootfs at "/proc/`

// ruleWrapperMissing: the container's command cannot be run. The command is our wrapper
// whatever the image; but the image may have put something in the place of the
// wrapper's volume, may have closed a directory on the way there, or may set more
// variables than a program can be started with.
func ruleWrapperMissing(f Failure) (Judgement, bool) {
	if f.Origin == FromContainer && !f.inPull() && f.says(onWrapper) {
		return suspicion(ToPilot,
			fmt.Sprintf("The image %q has something mounted below /proc, where the pod mounts its wrapper.", f.Image),
			"The wrapper cannot be run in the payload container; check the volume that the wrapper is on, which must hold the file "+options.WrapperProgram+"."), true
	}
	if f.Origin != FromContainer || f.inPull() || !f.says("exec: ", "exec format error", "exec /") {
		return Judgement{}, false
	}
	const ofPod = "The wrapper cannot be run in the payload container; check the container's command and the volume that the wrapper is on."
	switch {
	case f.says("argument list too long"):
		return suspicion(ToPilot, fmt.Sprintf("The environment variables of image %q are too many or too long to start any program with.", f.Image), ofPod), true
	case f.says("no such file or directory", "executable file not found", "permission denied", "exec format error", "not a directory", "is a directory",
		"too many levels of symbolic links"):
		return suspicion(ToPilot,
			fmt.Sprintf("The image %q has a file or link in the place of the pod's wrapper, or a directory on the way there that is closed; the image must leave that path free.", f.Image), ofPod), true
	}
	return Judgement{}, false
}

// ruleMountPoint: the image has something in the place where a volume of the pod goes,
// such as a file or a dangling symbolic link on the way to the sandbox, or a link that
// leads a volume to /proc. A volume that is gone from the node causes much the same
// message. None of that can displace the wrapper itself.
func ruleMountPoint(f Failure) (Judgement, bool) {
	if f.Origin != FromContainer || f.inPull() || !f.says("to rootfs at", "mounting", "mkdirat", "mountpoint", "cannot be mounted because") || f.says(onWrapper) ||
		!f.says("not a directory", "file exists", "too many levels of symbolic links", "read-only file system", "no such file or directory",
			"inside /proc", "not of type proc", "ordinary directory", "malicious path") {
		return Judgement{}, false
	}
	return suspicion(ToUser,
		fmt.Sprintf("The image %q has a file or link where the pod mounts a directory; the image must leave that path free.", f.Image),
		"A volume of the pod cannot be mounted in the payload container, whatever the image; look at the node and at the pod's manifest."), true
}

// ruleDiskFull: the node has no room for the image or the container. As long as the
// node can start containers of images that it already has, the pod is useful; and a
// small archive can unpack to more than any node holds.
func ruleDiskFull(f Failure) (Judgement, bool) {
	if f.Origin != FromContainer || !f.says("no space left on device", "disk quota exceeded", "not enough disk", "insufficient storage") {
		return Judgement{}, false
	}
	j := suspicion(ToPilot, fmt.Sprintf("The node's disk is full, or image %q is larger than the free space.", f.Image), "The node's disk is full.")
	j.Cleared = ToElsewhere // another node may have more room
	return j, true
}

// ruleRuntime: the container runtime repeatedly could not make or start the container,
// for a reason that no other rule knows. Images can make it fail in countless ways.
func ruleRuntime(f Failure) (Judgement, bool) {
	if f.Origin != FromContainer || f.inPull() || !f.says("oci runtime create failed", "oci runtime start failed", "container init caused", "failed to generate container", "failed to create containerd container") {
		return Judgement{}, false
	}
	j := suspicion(ToElsewhere,
		fmt.Sprintf("The container runtime cannot start a container with image %q.", f.Image),
		"The container runtime cannot start the payload container, whatever the image; look at the node.")
	j.Again = true
	j.Says = fmt.Sprintf("The payload container could not be started with image %q.", f.Image)
	return j, true
}

// ruleBadImage: the registry gave something that cannot be run as an image.
func ruleBadImage(f Failure) (Judgement, bool) {
	if !f.inPull() || !f.says("failed to extract layer", "failed to unpack image on snapshotter", "invalid tar header", "unsupported manifest", "unsupported media type",
		"unknown media type", "unexpected media type", "mismatched image rootfs", "wrong diff id", "not a container image", "schema 1", "schema1") {
		return Judgement{}, false
	}
	return Judgement{Class: ToUser, Subcode: SubcodeBadImage, Says: fmt.Sprintf(
		"The image %q cannot be unpacked; it is damaged, or not a container image.", f.Image)}, true
}
