package cedar

// Numbers of the commands that a starter accepts or sends
// (condor_includes/condor_commands.h).
const (
	QueryStartdAds = 5

	CCBRegister       = 67
	CCBRequest        = 68
	CCBReverseConnect = 69

	SharedPortConnect  = 75
	SharedPortPassSock = 76

	ConfigVal              = 457
	UpdateGSICred          = 487
	DelegateGSICredStarter = 500

	ReactivateClaimCheck = 554

	CACmd          = 1200
	CAReconnectJob = 1202 // travels as its name, inside CACmd

	StarterVacateJob         = 1500 // STARTER_HOLD_JOB before 24.9.2
	CreateJobOwnerSecSession = 1501
	StartSSHD                = 1502
	StarterPeek              = 1503

	DCRaiseSignal         = 60000
	DCConfigPersist       = 60002
	DCConfigRuntime       = 60003
	DCReconfig            = 60004
	DCOffGraceful         = 60005
	DCOffFast             = 60006
	DCConfigVal           = 60007
	DCChildAlive          = 60008
	DCAuthenticate        = 60010
	DCNop                 = 60011
	DCReconfigFull        = 60012
	DCFetchLog            = 60013
	DCInvalidateKey       = 60014
	DCOffPeaceful         = 60015
	DCSetPeacefulShutdown = 60016
	DCTimeOffset          = 60017
	DCPurgeLog            = 60018
	DCNopRead             = 60020
	DCNopWrite            = 60021
	DCNopNegotiator       = 60022
	DCNopAdministrator    = 60023
	DCNopOwner            = 60024
	DCNopConfig           = 60025
	DCNopDaemon           = 60026
	DCNopAdvertiseStartd  = 60027
	DCNopAdvertiseSchedd  = 60028
	DCNopAdvertiseMaster  = 60029
	DCSecQuery            = 60040
	DCSetForceShutdown    = 60041
	DCOffForce            = 60042
	DCSetReady            = 60043
	DCQueryReady          = 60044
	DCQueryInstance       = 60045

	FileTransUpload   = 61000 // the sender of the command receives files
	FileTransDownload = 61001 // the sender of the command sends files

	CreddGetCred = 81001
)

// Signals that exist only as the payload of DCRaiseSignal; numbers below are
// those of the operating system.
const (
	DCSigSuspend  = 100
	DCSigContinue = 101
	DCSigSoftKill = 102
	DCSigHardKill = 103
	DCSigPCkpt    = 104
	DCSigRemove   = 105
	DCSigHold     = 106
)
