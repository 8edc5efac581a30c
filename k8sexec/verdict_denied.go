package k8sexec

import (
	"fmt"
)

// ruleDenied: the registry does not give the image to this node. Registries that
// do not tell strangers which repositories exist say the same of a name that
// does not.
func ruleDenied(f failure) (judgement, bool) {
	if !f.inPull() || !f.says("401 unauthorized", "403 forbidden", "unauthorized", "denied", "insufficient_scope", "authentication required",
		"authorization failed", "no basic auth credentials", "invalid username/password") {
		return judgement{}, false
	}
	return judgement{class: toUser, subcode: SubcodeDenied, digest: true, says: fmt.Sprintf(
		"The registry does not allow to pull image %q, or there is no such image; check the name, and whether the image is public.", f.image)}, true
}
