package hostprog

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"podstarter/rescue"
)

// lesserThread is a thread without what setuid programs and files with capabilities
// give, for itself and for what it forks (prctl(2), PR_SET_NO_NEW_PRIVS). That cannot
// be undone, so it does nothing else. It serves one program after the other: in a pod
// whose job has used up all threads, there may be no other.
type lesserThread chan func()

// lesserThreads are those that wait for work.
type lesserThreads struct{ idle chan lesserThread }

func newLesserThreads() *lesserThreads {
	return &lesserThreads{idle: make(chan lesserThread, 2)} // more are seldom needed at once
}

// do has such a thread do the work and does not wait for it. With once, the work
// restricts the thread further, so the thread ends with it.
func (l *lesserThreads) do(once bool, work func()) error {
	if !once {
		select {
		case t := <-l.idle:
			t <- work
			return nil
		default:
		}
	}
	t, ready := make(lesserThread), make(chan error, 1)
	rescue.Go(func() { l.serve(t, once, ready) })
	if err := <-ready; err != nil {
		return err
	}
	t <- work
	return nil
}

func (l *lesserThreads) serve(t lesserThread, once bool, ready chan<- error) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		// The process's first thread cannot end, and must keep its rights. Use
		// another while this goroutine holds the first.
		begun := make(chan error, 1)
		rescue.Go(func() { l.serve(t, once, begun) })
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
		case l.idle <- t:
		default:
			return
		}
	}
}

// closeOnExec closes this process' open files in the programs that it executes, also
// those that it was started with.
func closeOnExec() error {
	const first = 3
	err := unix.CloseRange(first, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	names, e := os.ReadDir("/proc/self/fd") // a kernel before 5.11
	if e != nil {
		return fmt.Errorf("close descriptors: %w", errors.Join(err, e))
	}
	for _, name := range names {
		if fd, err := strconv.Atoi(name.Name()); err == nil && fd >= first {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}
