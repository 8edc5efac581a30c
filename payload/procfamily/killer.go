package procfamily

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Killer signals every process of a user ID with one kill(-1, sig), for which the kernel
// walks the process table itself and blocks forks: a fork bomb cannot outrun it.
//
// An operating-system thread with that user ID makes the call (in Linux, credentials belong
// to threads). The thread is created beforehand, since the payload may have used up the
// container's process IDs when it is needed. Only its effective user ID changes to the
// payload's:
//
//   - effective UID = the payload's: the kernel lets it signal the payload
//     (kill(2)) and, without capabilities, nothing of root's;
//   - real UID = one that no process has: the signal hits no one else;
//   - saved UID = root's: the payload cannot signal or trace the thread (the kernel checks
//     the target's real and saved UID), and the thread can become root again.
//
// A Killer needs root and CAP_SETUID.
type Killer struct {
	requests chan killRequest
}

type killRequest struct {
	pid        int // -1: all that the thread may signal
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
	onOtherThread(k.run)
	return k, nil
}

// Close frees the thread.
func (k *Killer) Close() { close(k.requests) }

// SignalOne sends sig to one process of user uid, which must be an unreaped child of the
// caller, so that no other process has its ID. Unlike kill(2) by root, it does not need the
// capability KILL.
func (k *Killer) SignalOne(uid, pid int, sig syscall.Signal) error {
	if pid <= 0 {
		return fmt.Errorf("signal process %d: refused, not a process ID", pid)
	}
	// This signals one process, so another process may have the real user ID.
	err := k.do(killRequest{pid: pid, uid: uid, guard: firstGuard, sig: sig})
	if err != nil {
		return fmt.Errorf("send signal %d to process %d: %w", int(sig), pid, err)
	}
	return nil
}

// signalAll sends sig to every process whose real or saved user ID is uid. It is not an
// error if there is none. guard is a user ID that no process has.
func (k *Killer) signalAll(uid, guard int, sig syscall.Signal) error {
	err := k.do(killRequest{pid: -1, uid: uid, guard: guard, sig: sig})
	// ESRCH: there is no other process; EPERM: all others belong to other users.
	if err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("send signal %d to all processes of user %d: %w", int(sig), uid, err)
	}
	return nil
}

func (k *Killer) do(r killRequest) error {
	switch {
	case k == nil:
		return fmt.Errorf("take on user ID %d: only root can", r.uid)
	case r.uid <= 0 || r.uid == os.Getuid() || r.uid == r.guard:
		return fmt.Errorf("take on user ID %d: refused, it is not a payload's user ID", r.uid)
	}
	r.result = make(chan error, 1)
	k.requests <- r
	return <-r.result
}

// Bounds of the search for a user ID that no process has. A user namespace of a pod maps
// 65536 user IDs, of which 65534 is "nobody" and 65532 is "nonroot" in many
// images.
const (
	firstGuard = 65531
	lastGuard  = 60000
)

// farGuard gives a user ID that no process has, without a look at the processes: nobody
// assigns user IDs above 2^31 (systemd's UIDS-GIDS.md). A user namespace of 65536 user IDs
// has none that high; see errNoSuchID.
func farGuard() int { return firstFarGuard + rand.IntN(farGuards) }

const (
	firstFarGuard = 4_000_000_000
	farGuards     = 250_000_000
)

// onOtherThread runs serve on a thread of its own that is not the process's first, and
// returns when serve has that thread. kill(2) of all processes compares the first thread's
// user IDs: if that thread took on the guard, another Killer with the same guard at that
// moment, for another payload, would kill this whole process.
func onOtherThread(serve func()) {
	held := make(chan struct{})
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// While this goroutine keeps the first thread, the next gets another.
			onOtherThread(serve)
			runtime.UnlockOSThread()
			close(held)
			return
		}
		close(held)
		serve()
	}()
	<-held
}

// run serves requests on the thread that it is locked to. If the thread cannot become root
// again, it and the Killer end.
func (k *Killer) run() {
	for r := range k.requests {
		restored, err := killAs(r)
		r.result <- err
		if !restored {
			// The goroutine ends locked, so Go ends the thread.
			onOtherThread(k.run)
			return
		}
	}
	runtime.UnlockOSThread()
}

// killAs makes the system calls. They are raw ones: the Go functions would
// change the credentials of all threads.
func killAs(r killRequest) (restored bool, err error) {
	// Changing the effective user ID makes the whole process undumpable (prctl(2),
	// PR_SET_DUMPABLE), and its /proc/PID unreadable for a peer without CAP_SYS_PTRACE.
	if dumpable, _, errno := unix.RawSyscall(unix.SYS_PRCTL, unix.PR_GET_DUMPABLE, 0, 0); errno == 0 && dumpable == 1 {
		defer func() { _, _, _ = unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1, 0) }()
	}
	_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(r.guard), uintptr(r.uid), 0)
	if errno == unix.EINVAL {
		return true, fmt.Errorf("take on user IDs %d and %d: %w", r.guard, r.uid, errNoSuchID)
	}
	if errno != 0 {
		return true, fmt.Errorf("take on user ID %d: %w; the container needs the capability SETUID", r.uid, errUnprivileged)
	}
	_, _, killErrno := unix.RawSyscall(unix.SYS_KILL, uintptr(r.pid), uintptr(r.sig), 0)
	_, _, errno = unix.RawSyscall(unix.SYS_SETRESUID, 0, 0, 0)
	if killErrno != 0 {
		err = killErrno
	}
	return errno == 0, err
}

// errNoSuchID says that the user namespace lacks a user ID (setresuid(2), EINVAL).
var errNoSuchID = errors.New("this user namespace has no such user ID")

// errUnprivileged differs from EPERM, which is harmless when kill(2) returns it.
var errUnprivileged = errors.New("not permitted")
