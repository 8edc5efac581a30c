package agent

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

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
		return errors.Join(removeShared(sharedDirs, uid), removeSysV("/proc/sysvipc", uid))
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
			err := filepath.WalkDir(dir, func(_ string, _ os.DirEntry, _ error) error {
				if left--; left < 0 {
					return fmt.Errorf("there are more than %d files in %s", most, strings.Join(dirs, " and "))
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return removeShared(dirs, uid)
	})
	if err != nil {
		return fmt.Errorf("remove the temporary files of user %d: %w", uid, err)
	}
	return nil
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
	// The change makes the process undumpable; see family.Killer.
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

// removeShared removes what the user owns in the directories; a directory that
// is not there is no error.
func removeShared(dirs []string, uid int) error {
	var failed error
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, os.ErrPermission) {
				failed = errors.Join(failed, err)
			}
			continue
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil {
				continue // gone already
			}
			if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) == uid {
				failed = errors.Join(failed, removeTree(filepath.Join(dir, e.Name())))
			}
		}
	}
	return failed
}

// removeTree removes a file, or a directory whatever its modes.
func removeTree(path string) error {
	//nolint:forbidigo // this thread is the payload's user and can do no more than the payload could
	err := os.RemoveAll(path)
	if !errors.Is(err, os.ErrPermission) {
		return err
	}
	// Directories without permissions; their owner may change that.
	_ = filepath.WalkDir(path, func(path string, d os.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			_ = unix.Fchmodat(unix.AT_FDCWD, path, 0o700, 0)
		}
		return nil
	})
	//nolint:forbidigo // as above
	return os.RemoveAll(path)
}

// removeSysV removes the System V objects of a user (sysvipc(7)).
func removeSysV(proc string, uid int) error {
	return errors.Join(
		removeObjects(filepath.Join(proc, "shm"), uid, func(id uintptr) syscall.Errno {
			_, _, errno := unix.Syscall(unix.SYS_SHMCTL, id, unix.IPC_RMID, 0)
			return errno
		}),
		removeObjects(filepath.Join(proc, "sem"), uid, func(id uintptr) syscall.Errno {
			_, _, errno := unix.Syscall6(unix.SYS_SEMCTL, id, 0, unix.IPC_RMID, 0, 0, 0)
			return errno
		}),
		removeObjects(filepath.Join(proc, "msg"), uid, func(id uintptr) syscall.Errno {
			_, _, errno := unix.Syscall(unix.SYS_MSGCTL, id, unix.IPC_RMID, 0)
			return errno
		}))
}

// removeObjects goes through one of the tables of /proc/sysvipc. The first line
// names the columns; the second column is the identifier in all of them.
func removeObjects(table string, uid int, remove func(id uintptr) syscall.Errno) error {
	f, err := os.Open(table)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission) {
			return nil // a kernel without them, or a runtime that hides them
		}
		return err
	}
	defer f.Close()
	ids, err := objectsOf(bufio.NewScanner(f), uid)
	for _, id := range ids {
		if errno := remove(id); errno != 0 && errno != unix.EINVAL && errno != unix.EIDRM {
			err = errors.Join(err, fmt.Errorf("object %d of %s: %w", id, table, errno))
		}
	}
	return err
}

// objectsOf reads the identifiers of a user's objects.
func objectsOf(lines *bufio.Scanner, uid int) ([]uintptr, error) {
	const identifier = 1
	owner := -1
	var ids []uintptr
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if owner < 0 {
			for i, name := range fields {
				if name == "uid" {
					owner = i
				}
			}
			if owner < 0 {
				return nil, fmt.Errorf("no column uid in %q", lines.Text())
			}
			continue
		}
		if len(fields) <= max(owner, identifier) || fields[owner] != strconv.Itoa(uid) {
			continue
		}
		id, err := strconv.ParseUint(fields[identifier], 10, 31)
		if err != nil {
			return nil, fmt.Errorf("identifier of an object: %w", err)
		}
		ids = append(ids, uintptr(id))
	}
	return ids, lines.Err()
}
