package k8sexec

import "fmt"

// ruleWrapperMissing: the container's command cannot be run. The command is our
// wrapper whatever the image, so the pod is at fault; unless the wrapper has run
// in this container before, for then the image must have put something, such as a
// symbolic link, in the place of the wrapper's volume.
func ruleWrapperMissing(f failure) (judgement, bool) {
	if f.origin != fromContainer || f.inPull() || !f.says("exec: ", "exec format error") || !f.says("no such file or directory", "executable file not found",
		"permission denied", "exec format error", "not a directory", "is a directory") {
		return judgement{}, false
	}
	if f.proven && f.says("no such file or directory", "not found", "directory") {
		return judgement{class: toUser, subcode: SubcodeBadImage, doubt: true,
			says: fmt.Sprintf("The image %q has a file or link in the place of the pod's wrapper; the image must leave that path free.", f.image)}, true
	}
	return judgement{class: toPilot, says: "The wrapper cannot be run in the payload container; check the container's command and the volume that the wrapper is on."}, true
}
