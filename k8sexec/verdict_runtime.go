package k8sexec

import "fmt"

// ruleRuntime: the container runtime could not make or start the container, time
// and again, for a reason that no other rule knows. What images can make it
// stumble over has no end.
func ruleRuntime(f failure) (judgement, bool) {
	if f.origin != fromContainer || f.inPull() || !f.says("oci runtime create failed", "oci runtime start failed", "container init caused", "failed to generate container", "failed to create containerd container") {
		return judgement{}, false
	}
	j := suspicion(toElsewhere,
		fmt.Sprintf("The container runtime cannot start a container with image %q.", f.image),
		"The container runtime cannot start the payload container, whatever the image; look at the node.")
	j.again = true
	j.says = fmt.Sprintf("The payload container could not be started with image %q.", f.image)
	return j, true
}
