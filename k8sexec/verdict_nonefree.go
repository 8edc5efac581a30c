package k8sexec

// ruleNoneFree: there are more activations than payload containers.
func ruleNoneFree(f failure) (judgement, bool) {
	if f.reason != reasonNoneFree {
		return judgement{}, false
	}
	return judgement{class: toElsewhere, says: "All payload containers of the pod are in use: the startd has more slots than " + knobContainers +
		" names containers. Install condor_config.d/95-podstarter-slots.conf, which makes it count them."}, true
}
