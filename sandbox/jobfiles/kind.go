package jobfiles

import (
	"fmt"
	"strings"

	"podstarter/classads"
)

// Kind is what an upload is for.
type Kind int

const (
	// Output returns the results of a job that has ended. The shadow puts
	// them where the user wants them.
	Output Kind = iota
	// Eviction saves what an interrupted job has done so far; the access
	// point keeps it in its spool and gives it to the next run.
	Eviction
	// Failure returns the files that a user wants from a job that did not succeed
	// (FailureFiles), and standard output and error.
	Failure
	// Checkpoint saves a job's own checkpoint; the job goes on.
	Checkpoint
)

func (k Kind) String() string {
	switch k {
	case Output:
		return "output"
	case Eviction:
		return "eviction"
	case Failure:
		return "failure"
	case Checkpoint:
		return "checkpoint"
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// Final is the flag that makes the shadow use the real destination and not its spool.
func (k Kind) Final() bool { return k == Output || k == Failure }

// When says when output travels, from WhenToTransferOutput.
type When int

const (
	OnExit        When = iota // ON_EXIT: when the job has exited by itself
	OnExitOrEvict             // ON_EXIT_OR_EVICT: also when it is made to leave
	OnSuccess                 // ON_SUCCESS: as ON_EXIT; Ended.Failed decides what travels
	Never                     // NONE
)

// ParseWhen reads WhenToTransferOutput (src/condor_utils/enum_utils.cpp:
// FileTransferOutputTranslation). Without it the starter cannot run a job that
// transfers files.
func ParseWhen(job *classads.Ad) (When, error) {
	word, err := job.GetString("WhenToTransferOutput")
	if err != nil {
		return Never, fmt.Errorf("the job says no time to transfer its output: %w", err)
	}
	for _, w := range []struct {
		word string
		when When
	}{
		{"NONE", Never}, {"NULL", Never},
		{"ON_EXIT", OnExit}, {"ONEXIT", OnExit},
		{"ON_EXIT_OR_EVICT", OnExitOrEvict}, {"ALWAYS", OnExitOrEvict},
		{"ON_SUCCESS", OnSuccess}, {"ONSUCCESS", OnSuccess},
	} {
		if strings.EqualFold(w.word, word) {
			return w.when, nil
		}
	}
	return Never, fmt.Errorf("the job's WhenToTransferOutput is %q, which is none of ON_EXIT, ON_EXIT_OR_EVICT and ON_SUCCESS", word)
}

// Ending is how an activation ends, as far as the choice of files depends on it.
type Ending struct {
	Ready     bool // the job's environment was complete: input arrived, setup done
	Started   bool // the job has run; WaitStatus is its wait status
	Evicted   bool // it was interrupted: vacated, removed, held, suspended too long
	Fast      bool // by a fast shutdown: nothing travels
	FinalOnRm bool // condor_rm -transfer: the real destination in spite of the eviction

	WaitStatus int // as wait(2) gives it
}

// Choose decides whether files travel at the end of an activation, and which
// (src/condor_starter.V6.1/jic_shadow.cpp:transferOutputStart, starter.cpp:
// transferOutput). A job whose environment was never completed returns its
// failure files.
func Choose(job *classads.Ad, when When, e Ending) (Kind, bool) {
	if e.Fast {
		return 0, false
	}
	if !e.Ready {
		return Failure, !e.Evicted
	}
	if e.Evicted && when != OnExitOrEvict && !e.FinalOnRm {
		return 0, false
	}
	if e.Evicted && !e.FinalOnRm && job.BoolOr("SpoolOnEvict", true) {
		return Eviction, true
	}
	if e.Started && !e.Evicted && Failed(job, e.WaitStatus) {
		return Failure, true
	}
	return Output, true
}

// Failed reports whether a wait status is not the one that the job calls
// success. Jobs that name none never fail (src/condor_starter.V6.1/
// starter_util.cpp:computeDesiredExitStatus).
func Failed(job *classads.Ad, waitStatus int) bool {
	code, noCode := job.GetInt("JobSuccessExitCode")
	signal, noSignal := job.GetInt("JobSuccessExitSignal")
	if noCode != nil && noSignal != nil {
		return false
	}
	want := code << 8
	if job.BoolOr("JobSuccessExitBySignal", false) {
		want = signal
	}
	return int64(waitStatus) != want
}
