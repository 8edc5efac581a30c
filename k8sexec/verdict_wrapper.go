package k8sexec

// ruleWrapperMissing: the container's command cannot be run. The command is our
// wrapper whatever the image, so the pod is at fault and not the user.
func ruleWrapperMissing(f failure) (judgement, bool) {
	if f.origin != fromContainer || f.inPull() || !f.says("exec: ", "exec format error") || !f.says("no such file or directory", "executable file not found",
		"permission denied", "exec format error", "not a directory", "is a directory") {
		return judgement{}, false
	}
	return judgement{class: toPilot, says: "The wrapper cannot be run in the payload container; check the container's command and the volume that the wrapper is on."}, true
}
