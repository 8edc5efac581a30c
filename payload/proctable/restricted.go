package proctable

import (
	"context"
	"fmt"
	"os"
	"runtime"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"podstarter/rescue"
)

// readRestricted reads files that only the process's own user may read (proc(5),
// PTRACE_MODE_READ_FSCREDS) into list. Root without CAP_SYS_PTRACE may not either, so a
// thread temporarily takes on the payload's filesystem user and group ID.
//
// The values of a process that has ended or made itself undumpable stay -1.
func (t *Table) readRestricted(ctx context.Context, list []Process, d Detail) error {
	fs, err := procfs.NewFS(t.proc)
	if err != nil {
		return fmt.Errorf("look at the payload: %w", err)
	}
	done := make(chan error, 1)
	rescue.Go(func() {
		runtime.LockOSThread()
		if os.Geteuid() == 0 {
			err := takeFilesystemIDs(t.family.UID, t.gid)
			// A thread that cannot restore its IDs ends with its goroutine.
			defer func() {
				if takeFilesystemIDs(0, os.Getegid()) == nil {
					runtime.UnlockOSThread()
				}
			}()
			if err != nil {
				done <- err
				return
			}
		} else {
			defer runtime.UnlockOSThread()
		}
		done <- rescue.Do(func() error {
			for i := range list {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				readProcess(fs, &list[i], d)
			}
			return nil
		})
	})
	return <-done
}

func readProcess(fs procfs.FS, p *Process, d Detail) {
	proc, err := fs.Proc(p.PID)
	if err != nil {
		return
	}
	if d.PSS {
		if smaps, err := proc.ProcSMapsRollup(); err == nil {
			p.PSS = int64(smaps.Pss)
		}
	}
	if d.IO {
		if io, err := proc.IO(); err == nil {
			p.ReadBytes = int64(io.ReadBytes)
			p.WriteBytes = max(int64(io.WriteBytes)-io.CancelledWriteBytes, 0)
		}
	}
}

// takeFilesystemIDs changes only this thread. The system calls report no errors but return
// the former value (setfsuid(2)); -1 changes nothing.
func takeFilesystemIDs(uid, gid int) error {
	const ask = ^uintptr(0)
	// The group first: afterwards the thread may not change it.
	_, _, _ = unix.RawSyscall(unix.SYS_SETFSGID, uintptr(gid), 0, 0)
	_, _, _ = unix.RawSyscall(unix.SYS_SETFSUID, uintptr(uid), 0, 0)
	gotGID, _, _ := unix.RawSyscall(unix.SYS_SETFSGID, ask, 0, 0)
	gotUID, _, _ := unix.RawSyscall(unix.SYS_SETFSUID, ask, 0, 0)
	if int(gotUID) != uid || int(gotGID) != gid {
		return fmt.Errorf("look at the payload as user %d, group %d: %w; the container needs the capabilities SETUID and SETGID", uid, gid, unix.EPERM)
	}
	return nil
}
