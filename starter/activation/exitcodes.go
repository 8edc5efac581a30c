package activation

// Exit codes of the process, as the startd reads them (HTCondor
// src/condor_includes/exit.h; src/condor_startd.V6/claim.cpp:starterExited).
const (
	ExitNormal     = 0
	ExitGeneral    = 1
	ExitLostShadow = 2
	ExitException  = 3
)
