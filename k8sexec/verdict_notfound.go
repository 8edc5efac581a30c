package k8sexec

import (
	"fmt"
)

// ruleNotFound: the registry answers that there is no such image.
func ruleNotFound(f failure) (judgement, bool) {
	if !f.inPull() || !f.says(": not found", "manifest unknown", "name unknown", "name_unknown", "manifest_unknown", "404 not found",
		"repository does not exist", "repository not known", "tag does not exist") {
		return judgement{}, false
	}
	return judgement{class: toUser, subcode: SubcodeNotFound, digest: true, says: fmt.Sprintf(
		"The image %q does not exist in its registry; check the name and the tag.", f.image)}, true
}
