package k8sexec

import "fmt"

// onWrapper is part of what a runtime says when the wrapper's file cannot be mounted
// (see checkCommand), as when it is missing: the kubelet makes a directory of its
// name then. Volumes that an image declares below /proc bring the same words.
const onWrapper = `to rootfs at "/proc/`

// ruleWrapperMissing: the container's command cannot be run. The command is our
// wrapper whatever the image; but the image may have put something in the place
// of the wrapper's volume, closed a directory on the way there, or bring more
// variables than a program can be started with.
func ruleWrapperMissing(f failure) (judgement, bool) {
	if f.origin == fromContainer && !f.inPull() && f.says(onWrapper) {
		return suspicion(toPilot,
			fmt.Sprintf("The image %q has something mounted below /proc, where the pod mounts its wrapper.", f.image),
			"The wrapper cannot be run in the payload container; check the volume that the wrapper is on, which must hold the file "+wrapperProgram+"."), true
	}
	if f.origin != fromContainer || f.inPull() || !f.says("exec: ", "exec format error", "exec /") {
		return judgement{}, false
	}
	const ofPod = "The wrapper cannot be run in the payload container; check the container's command and the volume that the wrapper is on."
	switch {
	case f.says("argument list too long"):
		return suspicion(toPilot, fmt.Sprintf("The environment variables of image %q are too many or too long to start any program with.", f.image), ofPod), true
	case f.says("no such file or directory", "executable file not found", "permission denied", "exec format error", "not a directory", "is a directory",
		"too many levels of symbolic links"):
		return suspicion(toPilot,
			fmt.Sprintf("The image %q has a file or link in the place of the pod's wrapper, or a directory on the way there that is closed; the image must leave that path free.", f.image), ofPod), true
	}
	return judgement{}, false
}
