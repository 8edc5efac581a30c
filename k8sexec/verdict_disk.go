package k8sexec

// ruleDiskFull: the node has no room for the image or the container.
func ruleDiskFull(f failure) (judgement, bool) {
	if f.origin != fromContainer || !f.says("no space left on device", "disk quota exceeded", "not enough disk", "insufficient storage") {
		return judgement{}, false
	}
	return judgement{class: toPilot, says: "The node's disk is full."}, true
}
