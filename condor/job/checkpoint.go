package job

import (
	"fmt"
	"syscall"
	"time"

	"podstarter/classads"
)

// Checkpoints says how a job saves its progress: it ends in an agreed way and
// expects to be started again.
type Checkpoints struct {
	// Self: the job ends like this without being asked (WantFTOnCheckpoint).
	Self bool
	// BySignal: the job ends like this when it gets CheckpointSig
	// (WantCheckpointSignal).
	BySignal bool
	// Status is the wait status of such an end.
	Status int

	code, signal int64
	signalled    bool
}

// CheckpointsOf reads how a job saves checkpoints
// (condor_starter.V6.1/starter_util.cpp:computeDesiredExitStatus,
// vanilla_proc.cpp:VanillaProc::JobReaper).
func CheckpointsOf(ad *classads.Ad) Checkpoints {
	c := Checkpoints{
		Self:      ad.BoolOr("WantFTOnCheckpoint", false),
		BySignal:  ad.BoolOr("WantCheckpointSignal", false),
		code:      ad.IntOr("SuccessCheckpointExitCode", 0),
		signal:    ad.IntOr("SuccessCheckpointExitSignal", 0),
		signalled: ad.BoolOr("SuccessCheckpointExitBySignal", false),
	}
	if c.signalled {
		c.Status = int(c.signal)
	} else {
		c.Status = int(c.code) << 8
	}
	return c
}

// Broken returns the hold reason for a job that got its checkpoint signal and did
// not end as it had promised.
func (c Checkpoints) Broken(status syscall.WaitStatus) string {
	promised := fmt.Sprintf("with exit code %d", c.code)
	if c.signalled {
		promised = fmt.Sprintf("on signal %d", c.signal)
	}
	actual := fmt.Sprintf("with exit code %d", status.ExitStatus())
	if status.Signaled() {
		actual = fmt.Sprintf("on signal %d", int(status.Signal()))
	}
	return "Job did not exit as promised when sent its checkpoint signal.  " +
		"Promised exit was " + promised + ", actual exit status was " + actual + "."
}

// PublishCheckpoint writes into an update that a checkpoint was saved when
// process p ended
// (vanilla_proc.cpp:VanillaProc::notifySuccessfulPeriodicCheckpoint).
func PublishCheckpoint(ad *classads.Ad, number int64, p Process) {
	ad.SetInt("CheckpointNumber", number)
	ad.SetInt("JobLastCheckpointTime", p.Ended.Unix())
	ad.SetInt("NewlyCommittedTime", int64(max(0, p.Ended.Sub(p.Started))/time.Second))
}
