package activation

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/starter/failure"
	"podstarter/starter/settings"
)

// sharedTasks is how many times a job's limit the kernel allows its user where that
// user's processes in all pods of the node, or the pilot's, count as well: more than a
// node's jobs have, so that none meets the limit because of its neighbours.
const sharedTasks = 64

// taskLimit is the kernel's limit of the job's processes and threads (RLIMIT_NPROC),
// behind that which the wrapper watches. The kernel counts by user, over all pods of the
// node that are not in user namespaces of their own; see docs/usage.md.
func (a *activation) taskLimit() []payload.Limit {
	n := uint64(a.set.MaxTasks)
	switch {
	case n == 0 || a.set.Backend == settings.BackendLocal && os.Getuid() != 0:
		return nil // the user is the pilot's, with all of its processes
	case os.Getuid() != 0 || a.set.Backend == settings.BackendPod && !ownUserNamespace("/proc/self/uid_map"):
		n *= sharedTasks
	}
	return []payload.Limit{{Resource: "nproc", Soft: n, Hard: n}}
}

// ownUserNamespace says whether the user IDs of this pod are other ones to the
// kernel (user_namespaces(7)).
func ownUserNamespace(path string) bool {
	text, err := os.ReadFile(path)
	return err == nil && strings.Join(strings.Fields(string(text)), " ") != "0 0 4294967295"
}

// crowded says whether the payload was killed for its number of processes.
func (a *activation) crowded(exit payload.Exit) bool {
	return !a.payload.ordered && (a.payload.crowd || exit.Killed == payload.KilledTasks)
}

// tooManyTasks is what becomes of such a job. The subcode is what fork(2) says at a
// limit.
func (a *activation) tooManyTasks() error {
	return failure.New(shadow.HoldJobOutOfResources, int(syscall.EAGAIN), fmt.Errorf(
		"the job had more than %d processes and threads at a time, and was killed: no more are allowed here (%s). "+
			"Many libraries start as many threads as the machine has cores; OMP_NUM_THREADS and the like make it fewer",
		a.set.MaxTasks, settings.KnobMaxProcesses.Name))
}
