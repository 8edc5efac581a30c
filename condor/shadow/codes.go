package shadow

// Reason is why a job's run is over, the second number of the job_exit call
// (condor_includes/exit.h).
type Reason int

// The reasons that a starter gives.
const (
	JobExited             Reason = 100 // it ended by itself
	JobKilled             Reason = 102 // while a hold or removal was under way
	JobCoreDumped         Reason = 103 // it ended with a core file
	JobShouldRequeue      Reason = 107 // it was vacated
	JobNotStarted         Reason = 108
	JobMissedDeferralTime Reason = 114
	JobStatusNeverStarted        = -1 // wait status of a job that did not run
)

// Exit statuses of the starter's own process, which tell the startd how the
// starter, not the job, fared (condor_includes/exit.h).
const (
	StarterExitNormal     = 0
	StarterExitGeneral    = 1
	StarterExitLostShadow = 2 // the startd releases the claim at once
	StarterExitException  = 3
	// From here on the startd marks the slot as broken.
	StarterExitImmortalLVM     = 15
	StarterExitImmortalProcess = 16
	StarterExitBrokenByRequest = 17
	StarterExitCgroupLocked    = 18
)

// Hold and vacate codes (condor_utils/condor_holdcodes.h). Those below
// VacateBase put a job on hold, the others send it back to the queue.
const (
	HoldUnspecified                   = 0
	HoldCorruptedCredential           = 4
	HoldFailedToCreateProcess         = 6 // subcode: errno
	HoldUnableToOpenOutput            = 7 // subcode: errno
	HoldUnableToOpenInput             = 8 // subcode: errno
	HoldUnableToOpenOutputStream      = 9
	HoldUnableToOpenInputStream       = 10
	HoldInvalidTransferAck            = 11
	HoldDownloadFileError             = 12 // on the wire: this side could not receive or write
	HoldUploadFileError               = 13 // on the wire: this side could not read or send
	HoldIwdError                      = 14 // subcode: errno
	HoldInvalidTransferGoAhead        = 18
	HoldHookPrepareJobFailure         = 19 // subcode: exit status of the hook
	HoldMissedDeferredExecutionTime   = 20
	HoldStartdHeldJob                 = 21
	HoldMaxTransferInputSizeExceeded  = 32
	HoldMaxTransferOutputSizeExceeded = 33
	HoldJobOutOfResources             = 34 // subcode: OutOfMemory, OutOfDisk
	HoldInvalidDockerImage            = 35
	HoldFailedToCheckpoint            = 36
	HoldPreScriptFailed               = 43
	HoldPostScriptFailed              = 44
	HoldSingularityTestFailed         = 45
	HoldCannotSwitchPrimaryGroup      = 49

	VacateBase                = 1000
	VacateJobNotStarted       = 1003
	VacateJobShouldRequeue    = 1005
	VacateStarterError        = 1007
	VacateClaimDeactivated    = 1009
	VacateStartdVacateCommand = 1010
	VacateStartdPreempt       = 1011
	VacateStartdException     = 1012
	VacateStartdShutdown      = 1013
	VacateStartdDraining      = 1014
	VacateStartdRelease       = 1017
	VacateContainerError      = 1021
	VacateJobRemoved          = 1023
	VacateScratchDirError     = 1024
	VacateCheckpointSaved     = 1025
)

// Subcodes.
const (
	OutOfMemory = 102 // of HoldJobOutOfResources
	OutOfDisk   = 104 // of HoldJobOutOfResources

	// FinalTransfer, with VacateClaimDeactivated, asks for the output of a job
	// that is being removed.
	FinalTransfer = 1

	// SubcodeRequeue turns a hold code into a return to the queue, as does
	// every subcode below it.
	SubcodeRequeue = -1000

	PluginNotFound         = -1001
	PluginNotOperational   = -1002
	PluginExecFailed       = -1003
	PluginNoResultReported = -1004
)

// ShouldVacate reports whether a code sends the job back to the queue rather
// than putting it on hold (condor_utils/condor_holdcodes.h:
// shouldVacateJobBasedOnCodes).
func ShouldVacate(code, subcode int) bool {
	return code <= HoldUnspecified || code >= VacateBase || subcode <= SubcodeRequeue
}
