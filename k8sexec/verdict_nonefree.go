package k8sexec

// ruleNoneFree: there are more activations than payload containers.
func ruleNoneFree(f failure) (judgement, bool) {
	if f.reason != reasonNoneFree {
		return judgement{}, false
	}
	return judgement{class: toElsewhere, says: "All payload containers of the pod are in use; the startd must not have more slots than " +
		knobContainers + " names containers."}, true
}
