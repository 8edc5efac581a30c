package k8sexec

// ruleEvicted: the kubelet or the cluster ends the pod for want of a resource or
// of time (kubelet eviction manager, node shutdown, active deadline,
// preemption). The job is not to blame: the pod's other containers count too.
func ruleEvicted(f failure) (judgement, bool) {
	if f.origin != fromPod {
		return judgement{}, false
	}
	switch f.reason {
	case "Evicted":
		return judgement{class: toElsewhere, says: "The pod was evicted from its node."}, true
	case "DeadlineExceeded":
		return judgement{class: toElsewhere, says: "The pod has reached the end of its time."}, true
	case "NodeShutdown", "Shutdown", "Terminated", "NodeLost", "Preempting", "UnexpectedAdmissionError", "NodeAffinity", "OutOfcpu", "OutOfmemory":
		return judgement{class: toElsewhere, says: "The node takes the pod down."}, true
	}
	return judgement{}, false
}
