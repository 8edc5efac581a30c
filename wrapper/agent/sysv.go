package agent

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// removeSysV removes the System V objects that a user owns or created (sysvipc(7)).
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

// removeObjects reads one of the tables of /proc/sysvipc. The first line names the columns;
// the second column is the identifier in all of them.
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

// objectsOf reads the identifiers of the objects that a user owns or created. The kernel
// gives the creator the owner's rights to use and remove an object, even if the owner has
// changed (IPC_SET); so the next job, with the same user ID, could use it.
func objectsOf(lines *bufio.Scanner, uid int) ([]uintptr, error) {
	const identifier = 1
	owner, creator := -1, -1
	user := strconv.Itoa(uid)
	var ids []uintptr
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if owner < 0 {
			owner, creator = slices.Index(fields, "uid"), slices.Index(fields, "cuid")
			if owner < 0 || creator < 0 {
				return nil, fmt.Errorf("no columns uid and cuid in %q", lines.Text())
			}
			continue
		}
		if len(fields) <= max(owner, creator, identifier) || fields[owner] != user && fields[creator] != user {
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
