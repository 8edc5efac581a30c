package orders

import (
	"context"
	"syscall"
	"time"

	"podstarter/condor/shadow"
	"podstarter/internal/cedar"
)

// Peaceful is SIGTERM without a limit to the time that the job takes
// (daemon_core_main.cpp:handle_off_peaceful).
const Peaceful = -int(syscall.SIGTERM)

// signalLines are what the stock starter logs of a signal of the kernel, or of a command
// that has the same meaning (daemon_core_main.cpp:handle_dc_sigterm, handle_dc_sigquit).
var signalLines = map[int]string{
	int(syscall.SIGTERM): "Got SIGTERM. Performing graceful shutdown.",
	Peaceful:             "Got SIGTERM. Performing peaceful shutdown.",
	int(syscall.SIGQUIT): "Got SIGQUIT.  Performing fast shutdown.",
}

// Signal does what a signal of the kernel or of daemonCore means to a starter
// (starter.cpp:Config). graceful is how long a graceful shutdown may take before it
// becomes a fast one; ctx ends that wait.
func (o *Orders) Signal(ctx context.Context, sig int, graceful time.Duration) {
	if line, ok := signalLines[sig]; ok {
		o.log.Info(line)
	}
	switch sig {
	case int(syscall.SIGTERM), cedar.DCSigSoftKill:
		o.End(Demand{Urgency: Soft})
		// The code is the one that a shadow writes where no reason is given.
		o.EndAfter(ctx, graceful, Demand{Reason: "the graceful shutdown took longer than SHUTDOWN_GRACEFUL_TIMEOUT", Code: shadow.VacateJobShouldRequeue})
	case Peaceful:
		o.End(Demand{Urgency: Soft})
	case int(syscall.SIGQUIT), int(syscall.SIGINT), cedar.DCSigHardKill:
		o.End(Demand{})
	case int(syscall.SIGUSR1), cedar.DCSigRemove:
		o.End(Demand{Urgency: Soft, Remove: true})
	case cedar.DCSigHold:
		o.End(Demand{Urgency: Soft, Hold: true})
	case cedar.DCSigSuspend:
		o.log.Info("Told to suspend the job")
		o.SetSuspended(true)
	case cedar.DCSigContinue:
		o.SetSuspended(false)
	case cedar.DCSigPCkpt:
		o.Checkpoint()
	case int(syscall.SIGHUP):
		o.log.Info("Got SIGHUP.  The configuration is read once per activation")
	default:
		o.log.Warn("A signal without a meaning here is ignored", "signal", sig)
	}
}
