package payloadrun

import (
	"os"
	"strings"

	"podstarter/condor/job"
	"podstarter/payload"
)

// sharedTasks multiplies a job's limit for the kernel where it counts the user's
// processes in all pods of the node, or the pilot's, as well: no job meets the limit
// because of its neighbours.
const sharedTasks = 64

// taskLimit is the kernel's limit of the job's processes and threads (RLIMIT_NPROC),
// behind the limit that the wrapper watches. The kernel counts by user, over all pods of
// the node that are not in user namespaces of their own; see docs/admin/usage.md.
func (j *Job) taskLimit() []payload.Limit {
	n := uint64(j.Settings.MaxTasks)
	switch {
	case n == 0 || !j.Settings.InPod() && os.Getuid() != 0:
		return nil // the user is the pilot's, with all of its processes
	case os.Getuid() != 0 || j.Settings.InPod() && !ownUserNamespace("/proc/self/uid_map"):
		n *= sharedTasks
	}
	return []payload.Limit{{Resource: "nproc", Soft: n, Hard: n}}
}

// ownUserNamespace says whether the user IDs of this pod are other ones to the kernel
// (user_namespaces(7)).
func ownUserNamespace(path string) bool {
	text, err := os.ReadFile(path)
	return err == nil && strings.Join(strings.Fields(string(text)), " ") != "0 0 4294967295"
}

func rlimits(l job.Limits) []payload.Limit {
	limit := func(resource string, n int64) payload.Limit {
		value := uint64(n)
		if n < 0 {
			value = payload.Unlimited
		}
		return payload.Limit{Resource: resource, Soft: value, Hard: value}
	}
	limits := []payload.Limit{limit("core", l.Core), limit("stack", l.Stack)}
	if l.AS > 0 {
		limits = append(limits, limit("as", l.AS))
	}
	return limits
}

// coreLimit is how large a core file of a script may be (script_proc.cpp:StartJob).
func (j *Job) coreLimit() uint64 {
	if n := j.Ad.IntOr("CoreSize", 0); n >= 0 {
		return uint64(n)
	}
	return payload.Unlimited
}
