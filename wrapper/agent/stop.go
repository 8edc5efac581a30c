package agent

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Signals that do not make the wrapper leave. All others do, since an image may
// name any of them as its STOPSIGNAL, and the kubelet sends that one.
var notStopping = map[syscall.Signal]bool{
	syscall.SIGCHLD: true, // children
	syscall.SIGURG:  true, // the Go runtime's own, for preemption
	syscall.SIGPIPE: true, // a peer that hung up
	syscall.SIGKILL: true, // cannot be caught, nor the next
	syscall.SIGSTOP: true,
}

// lastSignal is the highest real-time signal (signal(7)).
const lastSignal = 64

// catchStopSignals takes a millisecond, for the Go runtime prepares each signal
// by itself. Until then the default dispositions hold, under which the process
// ends as well.
func catchStopSignals() <-chan os.Signal {
	stop := make(chan os.Signal, 1)
	for sig := syscall.Signal(1); sig <= lastSignal; sig++ {
		if !notStopping[sig] {
			signal.Notify(stop, sig)
		}
	}
	// Caught and dropped: a write to a closed connection or log is an error
	// that is dealt with where it happens.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return stop
}

// leaveTimeout bounds the wait for the payload's end before the wrapper leaves.
// What is left then (a process that hangs in the kernel) is the container
// runtime's.
const leaveTimeout = time.Second

// leaveOnSignal does not go through the loop, which may be busy.
func (a *agent) leaveOnSignal() {
	a.leave((<-catchStopSignals()).String())
}

// leave kills the payload and ends the process. A launcher that has not become
// the payload's user yet dies by its parent death signal.
func (a *agent) leave(why string) {
	a.log.print("leaving: %s", why)
	a.control.withdraw()
	if f := a.target.Load(); f != nil {
		ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
		defer cancel()
		if err := f.Kill(ctx, a.killer); err != nil {
			a.log.print("leaving although: %v", err)
		}
	}
	os.Exit(exitLeft)
}
