package agent

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// The containers of a pod share one IPC namespace and one /dev/shm (kubelet
// pkg/kubelet/kuberuntime, makeMounts), which a container's restart does not
// empty. What a payload leaves there would meet the next one, another user's,
// under the same user ID.

// sharedDirs hold objects that outlive their processes (shm_overview(7),
// mq_overview(7)).
var sharedDirs = []string{"/dev/shm", "/dev/mqueue"}

// removeLeftovers removes the payload's shared memory, semaphores and message
// queues, and its files in sharedDirs. It acts as the payload's user, on a
// thread that is thrown away: whatever links and names the payload left there,
// nothing is done that the payload could not do itself. It is called when
// nothing of the payload is alive.
func removeLeftovers(uid, gid int) error {
	err := asPayload(uid, gid, func() error {
		return errors.Join(removeIn(sharedDirs, uid, true), removeSysV("/proc/sysvipc", uid))
	})
	if err != nil {
		return fmt.Errorf("remove what user %d left in shared memory: %w", uid, err)
	}
	return nil
}

// temporaryDirs are where programs leave files that they mean nobody to keep. They
// are the container's own, and matter when it is used again.
var temporaryDirs = []string{"/tmp", "/var/tmp"}

// maxTemporary is how many files are removed at most: with more, a new container
// is quicker.
const maxTemporary = 10_000

// removeTemporary removes the payload's files in directories, in the way of
// removeLeftovers, or none if there are more than most.
func removeTemporary(dirs []string, most, uid, gid int) error {
	err := asPayload(uid, gid, func() error {
		left := most
		for _, dir := range dirs {
			if count(unix.AT_FDCWD, dir, 0, &left); left < 0 {
				return fmt.Errorf("there are more than %d files in %s, or they lie too deep", most, strings.Join(dirs, " and "))
			}
		}
		return removeIn(dirs, uid, false)
	})
	if err != nil {
		return fmt.Errorf("remove the temporary files of user %d: %w", uid, err)
	}
	return nil
}

// maxTemporaryDepth is how deep they may lie, by the same reasoning.
const maxTemporaryDepth = 64

// count takes what is below a directory off left, until that is below 0, which it
// also makes it for what lies deeper than maxTemporaryDepth.
func count(at int, name string, depth int, left *int) {
	d, err := openDirectoryAt(at, name)
	if err != nil {
		return // not there, no directory, or not this user's to look at
	}
	defer d.close()
	if depth > maxTemporaryDepth {
		*left = -1
	}
	for *left >= 0 {
		name, kind, err := d.next()
		if err != nil {
			return
		}
		if *left--; kind == unix.DT_DIR || kind == unix.DT_UNKNOWN {
			count(d.fd, name, depth+1, left)
		}
	}
}

// asPayload calls what on a thread that has the payload's identity and is thrown
// away.
func asPayload(uid, gid int, what func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: Go ends the thread
		if unix.Gettid() == unix.Getpid() {
			// Go cannot end the first thread. It is the one whose user kill(2),
			// ptrace(2) and /proc/PID go by: it would let the payload at its wrapper,
			// and count as a process of the payload for ever. While this goroutine
			// holds it, the next gets another.
			err := asPayload(uid, gid, what)
			runtime.UnlockOSThread()
			done <- err
			return
		}
		err := becomeOnThread(uid, gid)
		if err == nil {
			err = what()
		}
		done <- err
	}()
	return <-done
}

// becomeOnThread gives the calling thread alone the payload's identity, for
// good. The system calls are raw ones: the Go functions would change the
// credentials of all threads.
func becomeOnThread(uid, gid int) error {
	// The change makes the process undumpable; see procfamily.Killer.
	defer func() { _, _, _ = unix.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1, 0) }()
	for _, call := range []struct {
		name    string
		trap    uintptr
		a, b, c uintptr
	}{
		{"setgroups", unix.SYS_SETGROUPS, 0, 0, 0},
		{"setresgid", unix.SYS_SETRESGID, uintptr(gid), uintptr(gid), uintptr(gid)},
		{"setresuid", unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)},
	} {
		if _, _, errno := unix.RawSyscall(call.trap, call.a, call.b, call.c); errno != 0 {
			return fmt.Errorf("%s: %w", call.name, errno)
		}
	}
	return nil
}
