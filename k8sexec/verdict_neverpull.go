package k8sexec

// ruleNeverPull: the pod's pull policy forbids what late binding is about.
func ruleNeverPull(f failure) (judgement, bool) {
	if f.reason != "ErrImageNeverPull" {
		return judgement{}, false
	}
	return judgement{class: toPilot, says: "The payload container's imagePullPolicy is Never, and the image is not on the node; set it to IfNotPresent in the pod's manifest."}, true
}
