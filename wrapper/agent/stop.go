package agent

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"podstarter/payload"
)

// Signals that do not make the wrapper leave. All others do, since an image may
// name any of them as its STOPSIGNAL, and the kubelet sends that one.
var notStopping = map[syscall.Signal]bool{
	syscall.SIGCHLD: true, // children
	syscall.SIGURG:  true, // the Go runtime's own, for preemption
	syscall.SIGPIPE: true, // a peer that hung up
	syscall.SIGKILL: true, // cannot be caught, like the next
	syscall.SIGSTOP: true,
}

// lastSignal is the highest real-time signal (signal(7)).
const lastSignal = 64

// usualStops are what images name as STOPSIGNAL; 37 is SIGRTMIN+3, for systemd. A companion
// has no image, and its startd may stop and continue everything below it, so only
// companionStops make it leave.
var (
	usualStops     = []os.Signal{syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGINT, syscall.SIGWINCH, syscall.SIGUSR1, syscall.SIGHUP, syscall.Signal(37)}
	companionStops = []os.Signal{syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGINT, syscall.SIGHUP}
)

// settle is how long the wrapper waits before it catches the less usual signals. Each takes
// the Go runtime a few dozen microseconds, which would delay the greeting.
const settle = 100 * time.Millisecond

// awaitStop waits for a signal to leave. The Go runtime handles signals that are not caught
// yet: most end the process, some are dropped.
func (a *agent) awaitStop() os.Signal {
	stop := make(chan os.Signal, 1)
	// Caught and dropped: a write to a closed connection or log returns an error, handled
	// there.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	if a.companion {
		signal.Notify(stop, companionStops...)
		return <-stop
	}
	signal.Notify(stop, usualStops...)
	select {
	case sig := <-stop:
		return sig
	case <-time.After(settle):
	}
	for sig := syscall.Signal(1); sig <= lastSignal; sig++ {
		if !notStopping[sig] {
			signal.Notify(stop, sig)
		}
	}
	return <-stop
}

// leaveTimeout bounds the wait for the payload's end before the wrapper leaves. The
// container runtime has to end what is left then (a process that hangs in the kernel).
const leaveTimeout = time.Second

// leaveOnSignal hands the signal to the loop, and kills the payload without it if it is
// busy.
func (a *agent) leaveOnSignal() {
	sig := a.awaitStop()
	select {
	case a.events <- event{stop: sig}:
		select {} // the loop ends the process
	case <-time.After(leaveTimeout):
		a.killForGood(sig.String())
		leave()
	}
}

// stopped handles a stop signal. While a starter is connected, the signal means that the
// pod is being taken down: a starter makes its container anew before it connects, and
// nobody else has a reason to stop one. So the wrapper tells the starter, which has the
// rest of the grace period to end its job as the user asked; then the kubelet's SIGKILL
// ends the rest. A companion has no grace period and leaves.
func (a *agent) stopped(sig os.Signal) {
	if a.conn == nil || a.companion {
		a.killForGood(sig.String())
		a.end()
	}
	a.log.print("%v: leaving as soon as the starter has ended its job", sig)
	a.going = true
	a.control.withdraw()
	a.reply(payload.Message{Stopping: true})
}

// killForGood kills the payload. A launcher that is not yet the payload's user dies by its
// parent death signal when the wrapper ends.
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

// end records the end of the payload, tells a connected starter, and ends the process.
func (a *agent) end() {
	a.reap()
	leave()
}

// leave ends the process without os.Exit, which waits for a second in a program that was
// built with the race detector.
func leave() { syscall.Exit(ExitLeft) }
