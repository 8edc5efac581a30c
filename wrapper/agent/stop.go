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
//
// A companion has no image that could name a signal, but a startd that may stop
// and continue everything below it: only the usual ones make it leave.
func catchStopSignals(companion bool) <-chan os.Signal {
	stop := make(chan os.Signal, 1)
	// Caught and dropped: a write to a closed connection or log is an error
	// that is dealt with where it happens.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	if companion {
		signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP)
		return stop
	}
	for sig := syscall.Signal(1); sig <= lastSignal; sig++ {
		if !notStopping[sig] {
			signal.Notify(stop, sig)
		}
	}
	return stop
}

// leaveTimeout bounds the wait for the payload's end before the wrapper leaves.
// What is left then (a process that hangs in the kernel) is the container
// runtime's.
const leaveTimeout = time.Second

// leaveOnSignal kills without waiting for the loop, which may be busy, and lets
// the loop record the end of the payload if it is not.
func (a *agent) leaveOnSignal(companion bool) {
	a.killForGood((<-catchStopSignals(companion)).String())
	select {
	case a.events <- event{leave: true}:
		select {} // the loop ends the process
	case <-time.After(leaveTimeout):
		os.Exit(exitLeft)
	}
}

// killForGood kills the payload. A launcher that has not become the payload's
// user yet dies by its parent death signal when the wrapper ends.
func (a *agent) killForGood(why string) {
	a.log.print("leaving: %s", why)
	a.leaving.Store(true)
	a.control.withdraw()
	f := a.target.Load()
	if f == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTimeout)
	defer cancel()
	if err := f.Kill(ctx, a.killer); err != nil {
		a.log.print("leaving although: %v", err)
	}
}

// end records the end of the payload, tells the starter if it is there, and ends
// the process.
func (a *agent) end() {
	a.reap()
	os.Exit(exitLeft)
}
