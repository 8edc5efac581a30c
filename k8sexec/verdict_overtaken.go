package k8sexec

// ruleOvertaken: somebody else has patched the container again and again.
func ruleOvertaken(f failure) (judgement, bool) {
	if f.reason != reasonOvertaken {
		return judgement{}, false
	}
	return judgement{class: toElsewhere, says: "Somebody else binds images to the same payload container; no two pilots may share a pod or " +
		knobPrivateDir + "."}, true
}
