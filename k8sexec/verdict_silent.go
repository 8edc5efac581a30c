package k8sexec

import "fmt"

// ruleSilentWrapper: a container of this binding runs, but what runs in it is not
// a wrapper that can be talked to; or the image has hidden the place where it
// listens.
func ruleSilentWrapper(f failure) (judgement, bool) {
	switch f.reason {
	case reasonUnusable:
		return suspicion(toPilot,
			fmt.Sprintf("The starter cannot talk to the pod's wrapper in image %q.", f.image),
			"The starter cannot talk to what runs in the payload container; check "+knobControlDir+
				", and that starter and wrapper come from the same installation."), true
	case reasonSilent:
	default:
		return judgement{}, false
	}
	return suspicion(toPilot,
		fmt.Sprintf("The pod's wrapper does not announce itself in image %q.", f.image),
		"The payload container runs, but its wrapper does not announce itself with the binding's nonce; "+
			"check the container's command, its mount of "+knobControlDir+" and its variable POD_STARTER_NONCE."), true
}
