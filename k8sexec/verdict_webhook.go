package k8sexec

import (
	"fmt"
)

// ruleWebhook: an admission webhook or policy of the cluster denied the patch, or
// could not be asked. Which it is shows in words only: denials come as 403 or
// 422 with the words below (apiserver admission/plugin/webhook/errors, .../policy).
//
// A denial that names the image is about the image: the user chose it and can
// choose another. One that does not is about the pod or the pilot, as is one that
// the policy would utter for every image.
func ruleWebhook(f failure) (judgement, bool) {
	if !isAdmission(f) {
		return judgement{}, false
	}
	switch {
	case f.says("failed calling webhook"):
		return judgement{class: toElsewhere, form: true, says: "The cluster's admission webhook did not answer, so that the pod could not be changed."}, true
	case f.says("validatingadmissionpolicy '" + pilotPolicy + "'"):
		return judgement{class: toPilot, says: "The cluster's policy " + pilotPolicy + " does not let this pilot put images into its own pod; run condor_pod_starter -check there."}, true
	case namesImage(f.message, f.spec), namesImage(f.message, f.image):
		return judgement{class: toUser, subcode: SubcodePolicy, form: true,
			says: fmt.Sprintf("A policy of the cluster does not allow to run the image %q here; use one that it allows, or ask the site to allow this one.", f.image)}, true
	}
	return judgement{class: toElsewhere, form: true,
		says: fmt.Sprintf("The cluster's admission control does not let this pod run the image %q; allow the image there, or keep such jobs away from this pod.", f.image)}, true
}

// pilotPolicy is the name of the policy that confines pilots to their own pods
// (deploy/policy).
const pilotPolicy = "podstarter-pilot"

// isAdmission tells a refusal by admission control from one by RBAC.
func isAdmission(f failure) bool {
	return f.origin == fromAPI && f.says("admission webhook", "validatingadmissionpolicy", "failed calling webhook", "image policy webhook")
}
