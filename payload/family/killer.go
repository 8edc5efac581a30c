package family

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Killer signals every process of a user ID with one kill(-1, sig), for which
// the kernel walks the process table itself with forks held off: a fork bomb
// cannot outrun it.
//
// The call is made by an operating-system thread that has taken on the user ID
// (credentials belong to threads in Linux). The thread is created beforehand,
// since a payload may have used up the container's process IDs when it is
// needed. It takes the user ID on as its effective one only:
//
//   - effective UID = the payload's: the kernel lets it signal the payload
//     (kill(2)) and, without capabilities, nothing of root's;
//   - real UID = one that no process has: no one else is hit by it;
//   - saved UID = root's: the payload may not signal or trace the thread, for
//     which the kernel compares the target's real and saved UID, and the thread
//     can come back.
//
// A Killer needs root and CAP_SETUID.
type Killer struct {
	requests chan killRequest
}

type killRequest struct {
	uid, guard int
	sig        syscall.Signal
	result     chan error
}

// NewKiller makes a Killer.
func NewKiller() (*Killer, error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("signalling by user ID needs root, this is user %d: %w", os.Geteuid(), unix.EPERM)
	}
	k := &Killer{requests: make(chan killRequest)}
	go k.run()
	return k, nil
}

// Close gives the thread back.
func (k *Killer) Close() { close(k.requests) }

// signal sends sig to every process whose real or saved user ID is uid. That
// there is none is not an error. guard is a user ID that no process has.
func (k *Killer) signal(uid, guard int, sig syscall.Signal) error {
	switch {
	case k == nil:
		return fmt.Errorf("signal all processes of user %d: %w without root", uid, unix.EPERM)
	case uid <= 0 || uid == os.Getuid() || uid == guard:
		return fmt.Errorf("signal all processes of user %d: refused, that is no payload's", uid)
	}
	r := killRequest{uid: uid, guard: guard, sig: sig, result: make(chan error, 1)}
	k.requests <- r
	if err := <-r.result; err != nil {
		return fmt.Errorf("send signal %d to all processes of user %d: %w", int(sig), uid, err)
	}
	return nil
}

// Bounds of the search for a user ID that no process has. A user namespace of a pod maps
// 65536 user IDs, of which 65534 is "nobody" and 65532 is "nonroot" in many
// images.
const (
	firstGuard = 65531
	lastGuard  = 60000
)

// run serves requests on a thread of its own. Should the thread fail to become
// root again, it ends, and with it the Killer.
func (k *Killer) run() {
	runtime.LockOSThread()
	for r := range k.requests {
		restored, err := killAs(r)
		r.result <- err
		if !restored {
			// The goroutine ends locked, so Go ends the thread.
			go k.run()
			return
		}
	}
	runtime.UnlockOSThread()
}

// killAs makes the system calls. They are raw ones: the Go functions would
// change the credentials of all threads.
func killAs(r killRequest) (restored bool, err error) {
	// A change of the effective user ID makes the whole process undumpable
	// (prctl(2), PR_SET_DUMPABLE), and its /proc/PID unreadable to a peer
	// without CAP_SYS_PTRACE.
	if dumpable, _, errno := unix.RawSyscall(unix.SYS_PRCTL, unix.PR_GET_DUMPABLE, 0, 0); errno == 0 && dumpable == 1 {
		defer unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1, 0)
	}
	_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(r.guard), uintptr(r.uid), 0)
	if errno != 0 {
		return true, fmt.Errorf("take on the user ID: %w", errno)
	}
	_, _, killErrno := unix.RawSyscall(unix.SYS_KILL, ^uintptr(0), uintptr(r.sig), 0)
	_, _, errno = unix.RawSyscall(unix.SYS_SETRESUID, 0, 0, 0)
	// EPERM: everything that was there belongs to someone else.
	if killErrno != 0 && killErrno != unix.ESRCH && killErrno != unix.EPERM {
		err = killErrno
	}
	return errno == 0, err
}
