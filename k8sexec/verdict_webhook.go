package k8sexec

import (
	"fmt"
)

// ruleWebhook: an admission webhook or policy of the cluster denied the patch, or
// could not be asked. Which it is shows in words only: denials come as 403 or
// 422 with the words below (apiserver admission/plugin/webhook/errors, .../policy).
// The site decides what its policies allow, hence it is told.
func ruleWebhook(f failure) (judgement, bool) {
	if !isAdmission(f) {
		return judgement{}, false
	}
	j := judgement{class: toElsewhere, form: true,
		says: fmt.Sprintf("The cluster's admission control does not let this pod run the image %q; allow the image there, or keep such jobs away from this pod.", f.image)}
	if f.says("failed calling webhook") {
		j.says = "The cluster's admission webhook did not answer, so that the pod could not be changed."
	}
	return j, true
}

// isAdmission tells a refusal by admission control from one by RBAC.
func isAdmission(f failure) bool {
	return f.origin == fromAPI && f.says("admission webhook", "validatingadmissionpolicy", "failed calling webhook", "image policy webhook")
}
