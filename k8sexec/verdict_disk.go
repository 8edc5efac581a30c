package k8sexec

import "fmt"

// ruleDiskFull: the node has no room for the image or the container. As long as
// it can start containers of images that it has, the pod is of use; and a small
// archive can unpack to more than any node holds.
func ruleDiskFull(f failure) (judgement, bool) {
	if f.origin != fromContainer || !f.says("no space left on device", "disk quota exceeded", "not enough disk", "insufficient storage") {
		return judgement{}, false
	}
	j := suspicion(toPilot, fmt.Sprintf("The node's disk is full, or image %q larger than it has room for.", f.image), "The node's disk is full.")
	j.cleared = toElsewhere // another node may have more room
	return j, true
}
