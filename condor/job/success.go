package job

import (
	"syscall"

	"podstarter/classads"
)

// Ending is a pattern of how a process may end.
type Ending struct {
	// Status is the wait status that fits exactly.
	Status syscall.WaitStatus
	// Specified says that the ad names a code or a signal at all; if it does
	// not, every ending is as good.
	Specified bool
}

// SuccessOf is how the job must end to be called successful. If it ends
// otherwise, its failure files are transferred instead of its output
// (condor_starter.V6.1/starter_util.cpp:computeDesiredExitStatus).
func SuccessOf(ad *classads.Ad) Ending { return ending(ad, "JobSuccess") }

// CheckpointOf is how a job that checkpoints itself ends when it wants to be
// started again (condor_starter.V6.1/vanilla_proc.cpp:VanillaProc::JobReaper).
// It means something only with WantFTOnCheckpoint.
func CheckpointOf(ad *classads.Ad) Ending { return ending(ad, "SuccessCheckpoint") }

// Checkpoints says whether the job writes checkpoints and ends with
// [CheckpointOf] each time.
func Checkpoints(ad *classads.Ad) bool { return ad.BoolOr("WantFTOnCheckpoint", false) }

func ending(ad *classads.Ad, prefix string) Ending {
	var e Ending
	code, err := ad.GetInt(prefix + "ExitCode")
	e.Specified = err == nil
	signal, err := ad.GetInt(prefix + "ExitSignal")
	e.Specified = e.Specified || err == nil
	if ad.BoolOr(prefix+"ExitBySignal", false) {
		e.Status = syscall.WaitStatus(signal & 0x7f)
	} else {
		e.Status = syscall.WaitStatus(code & 0xff << 8)
	}
	return e
}

// Fits says whether a wait status is such an ending.
func (e Ending) Fits(status syscall.WaitStatus) bool { return status == e.Status }

// Successful says whether a job that ended so is called successful.
func (e Ending) Successful(status syscall.WaitStatus) bool { return !e.Specified || e.Fits(status) }
