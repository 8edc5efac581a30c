package k8sexec

// ruleOutOfMemory: the payload container ran into its memory limit. On cgroup v2
// the kernel kills wrapper and job together (memory.oom.group).
func ruleOutOfMemory(f failure) (judgement, bool) {
	if f.reason != reasonOutOfMemory {
		return judgement{}, false
	}
	return judgement{class: toUser, subcode: SubcodeOutOfMemory,
		says: "The job used more memory than its container may have, and was killed; request more memory."}, true
}
