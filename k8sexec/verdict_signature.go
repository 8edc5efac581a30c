package k8sexec

import (
	"fmt"
)

// ruleSignature: the node runs signed images only.
func ruleSignature(f failure) (judgement, bool) {
	if !f.inPull() || f.reason != "SignatureValidationFailed" && !f.says("source image rejected", "signature was required") {
		return judgement{}, false
	}
	return judgement{class: toUser, subcode: SubcodeSignature,
		says: fmt.Sprintf("The image %q does not have a signature that this site accepts.", f.image)}, true
}
