package agent

import (
	"errors"
	"fmt"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// The containers of a pod share one IPC namespace and one /dev/shm (kubelet
// pkg/kubelet/kuberuntime, makeMounts), which a container's restart does not empty. The
// next payload, of another user but with the same user ID, would find what one payload left
// there.

// sharedDirs hold objects that outlive their processes (shm_overview(7),
// mq_overview(7)).
var sharedDirs = []string{"/dev/shm", "/dev/mqueue"}

// removeLeftovers removes the payload's shared memory, semaphores and message queues, and
// its files in sharedDirs. It acts as the payload's user, on a thread that ends afterwards:
// despite any links and names that the payload left, it can do only what the payload could.
// Call it when no process of the payload is alive.
func removeLeftovers(uid, gid int) error {
	err := asPayload(uid, gid, func() error {
		return errors.Join(removeIn(sharedDirs, uid, true), removeSysV("/proc/sysvipc", uid))
	})
	if err != nil {
		return fmt.Errorf("remove what user %d left in shared memory: %w", uid, err)
	}
	return nil
}

// temporaryDirs are where programs leave temporary files. They belong to the container and
// matter when it is used again.
var temporaryDirs = []string{"/tmp", "/var/tmp"}

// maxTemporary is the most files that are removed: with more, a new container is faster.
const maxTemporary = 10_000

// removeTemporary removes the payload's files in directories as removeLeftovers does, or
// none of them if there are more than most.
func removeTemporary(dirs []string, most, uid, gid int) error {
	err := asPayload(uid, gid, func() error {
		left := most
		for _, dir := range dirs {
			if count(unix.AT_FDCWD, dir, 0, &left); left < 0 {
				return fmt.Errorf("there are more than %d files in %s, or they are too deep", most, strings.Join(dirs, " and "))
			}
		}
		return removeIn(dirs, uid, false)
	})
	if err != nil {
		return fmt.Errorf("remove the temporary files of user %d: %w", uid, err)
	}
	return nil
}

// maxTemporaryDepth is how deep they may be, for the same reason.
const maxTemporaryDepth = 64

// count subtracts the number of entries below a directory from left, until that is below 0.
// A directory deeper than maxTemporaryDepth also makes it negative.
func count(at int, name string, depth int, left *int) {
	d, err := openDirectoryAt(at, name)
	if err != nil {
		return // missing, not a directory, or not readable for this user
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

// asPayload calls what on a thread that has the payload's identity and ends afterwards.
func asPayload(uid, gid int, what func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: Go ends the thread
		if unix.Gettid() == unix.Getpid() {
			// Go cannot end the first thread, whose user kill(2), ptrace(2) and /proc/PID
			// check: it would give the payload access to its wrapper, and count as a payload
			// process for ever. While this goroutine holds it, the next gets another.
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

// becomeOnThread gives only the calling thread the payload's identity, for good. The system
// calls are raw ones: the Go functions would change the credentials of all threads.
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
