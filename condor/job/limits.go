package job

import (
	"errors"

	"podstarter/classads"
)

// Unlimited is the value for no limit.
const Unlimited = -1

// Limits are the resource limits and the priority of a job's process.
type Limits struct {
	Core  int64 // RLIMIT_CORE in bytes; Unlimited if negative
	Stack int64 // RLIMIT_STACK in bytes; Unlimited
	AS    int64 // RLIMIT_AS in bytes; 0 leaves it alone
	Nice  int   // 0 to 19
	CPUs  []int // numbers of the CPUs to run on; empty for all
}

// renice is the priority of a job whose JOB_RENICE_INCREMENT is not an integer.
const renice = 10

// LimitsOf reads the limits (condor_starter.V6.1/os_proc.cpp:OsProc::StartJob,
// condor_sysapi/resource_limits.cpp). A job without CoreSize gets no core file. A
// missing or zero stack size means the hard limit. The slot's id may select CPUs.
// The error lists the knobs that cannot be parsed; for these the returned limits
// have stock's defaults.
func LimitsOf(ad, machine *classads.Ad, slot string, k Knobs) (Limits, error) {
	l := Limits{Stack: Unlimited}
	if core, err := ad.GetInt("CoreSize"); err == nil {
		l.Core = max(core, Unlimited)
	}
	if stack, err := ad.GetInt("StackSize"); err == nil && stack > 0 {
		l.Stack = stack
	}
	as, err := k.EvalInt("STARTER_RLIMIT_AS", 0, machine, ad)
	const mebibyte = 1 << 20
	if as > 0 && as < (1<<63-1)/mebibyte {
		l.AS = as * mebibyte
	}
	nice, niceErr := k.EvalInt("JOB_RENICE_INCREMENT", 0, ad, nil)
	if niceErr != nil {
		nice = renice
		err = niceErr
	}
	l.Nice = int(max(0, min(nice, 19)))
	var cpuErr error
	l.CPUs, cpuErr = affinity(slot, k)
	return l, errors.Join(err, cpuErr)
}
