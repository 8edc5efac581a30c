package k8sexec

// ruleStillAlive: a process of an earlier job in this container may be alive, which
// could read what the next job is given. One that survives SIGKILL hangs in the kernel.
func ruleStillAlive(f failure) (judgement, bool) {
	if f.reason != reasonStillAlive {
		return judgement{}, false
	}
	return judgement{class: toElsewhere, says: "An earlier job of this payload container may still be alive, so that no other begins in it."}, true
}
