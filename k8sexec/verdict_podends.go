package k8sexec

// rulePodEnds: the pod is being deleted, has ended, or has been replaced.
func rulePodEnds(f failure) (judgement, bool) {
	if f.origin != fromPod {
		return judgement{}, false
	}
	return judgement{class: toElsewhere, says: "The pod comes to its end; the job may run in another one."}, true
}
