package main

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"

	"podstarter/rescue"
)

// lesserThread is a thread without what setuid programs and files with
// capabilities give, for itself and for what it forks (prctl(2), PR_SET_NO_NEW_PRIVS).
// That is for good, so it does nothing else. It serves one program after the other:
// another thread may not be had, see reserveThreads.
type lesserThread chan func()

// idleLesser are those that wait for work. There are seldom two.
var idleLesser = make(chan lesserThread, 2)

// onLesserThread has such a thread do the work and does not wait for it. With once, the
// work takes more from the thread, which ends with it.
func onLesserThread(once bool, work func()) error {
	if !once {
		select {
		case t := <-idleLesser:
			t <- work
			return nil
		default:
		}
	}
	t, ready := make(lesserThread), make(chan error, 1)
	rescue.Go(func() { t.serve(once, ready) })
	if err := <-ready; err != nil {
		return err
	}
	t <- work
	return nil
}

func (t lesserThread) serve(once bool, ready chan<- error) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		// The process's first thread cannot end, and is not to lose anything. Another
		// is used while this goroutine has that one.
		begun := make(chan error, 1)
		rescue.Go(func() { t.serve(once, begun) })
		ready <- <-begun
		runtime.UnlockOSThread()
		return
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		ready <- fmt.Errorf("set no_new_privs: %w", err)
		return
	}
	ready <- nil
	for work := range t {
		work()
		if once {
			return // and the thread ends, being locked
		}
		select {
		case idleLesser <- t:
		default:
			return
		}
	}
}
