package beneath

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"podstarter/rescue"
)

// Owner is the identity that files are created and opened with. The zero value is root;
// use [Self] for the identity of this process.
type Owner struct {
	UID, GID int   // numeric ids; UID < 0 means the process's own identity
	Groups   []int // supplementary groups; nil means only GID
}

// Self returns the owner that stands for the process itself.
func Self() Owner { return Owner{UID: -1, GID: -1} }

// Switches reports whether acting as o differs from acting as the process.
func (o Owner) Switches() bool { return o.UID >= 0 && o.UID != os.Geteuid() }

// ids returns the uid and gid to chown to, -1 for "leave".
func (o Owner) ids() (uid, gid int) {
	if !o.Switches() {
		return -1, -1
	}
	return o.UID, o.GID
}

// Chown gives an open file to o; it does nothing if o is the process itself.
func (o Owner) Chown(fd int) error {
	uid, gid := o.ids()
	if uid < 0 {
		return nil
	}
	return unix.Fchown(fd, uid, gid)
}

var errGoexit = errors.New("the work ended its goroutine")

// Do runs fn with the filesystem identity of o: files are opened, created and
// looked up as that user (credentials(7): filesystem user ID), while signals,
// sockets and the rest of the process keep the process's own identity. It
// returns the error of fn, or says why the identity could not be taken.
//
// fn runs in a goroutine of its own, on a thread that does nothing else meanwhile
// and then gets the process's identity back, or ends. It must not start goroutines
// that open files: they would run as the process.
//
// The kernel marks a process as not dumpable when one of its threads changes
// its filesystem identity (kernel/cred.c:commit_creds). Afterwards only root
// may read /proc/self.
func (o Owner) Do(fn func() error) error {
	if !o.Switches() {
		return fn()
	}
	if euid := os.Geteuid(); euid != 0 {
		return fmt.Errorf("cannot act as uid %d: this process runs as uid %d and not as root; "+
			"let jobs run as uid %d, or start the daemon as root", o.UID, euid, euid)
	}
	result := make(chan error, 1)
	rescue.Go(func() {
		err := errGoexit
		defer func() { result <- err }()
		// The runtime ends a thread whose goroutine ends while locked to it, and with
		// it the identity. The kernel may refuse a new thread, so do this only for a
		// thread that cannot get its identity back.
		runtime.LockOSThread()
		if unix.Gettid() == unix.Getpid() {
			// The runtime cannot end the main thread, only park it, and
			// /proc/<pid>/status shows that thread's identity for good.
			// While this goroutine holds it, another one runs elsewhere.
			err = o.Do(fn)
			runtime.UnlockOSThread()
			return
		}
		groups, failed := unix.Getgroups()
		if err = o.assume(); err == nil {
			err = rescue.Do(fn)
		}
		own := Owner{UID: os.Geteuid(), GID: os.Getegid(), Groups: append([]int{}, groups...)}
		if failed == nil && own.assume() == nil {
			runtime.UnlockOSThread()
		}
	})
	return <-result
}

// Become is Do with o as the effective user and group of the thread too, and so without root's capabilities. It is for
// paths that o has chosen: for some files the kernel asks who the effective user is, and not who the file system's is, as
// for those of /proc/sys (fs/proc/proc_sysctl.c:test_perm).
func (o Owner) Become(fn func() error) error {
	if !o.Switches() {
		return fn()
	}
	return o.Do(func() (err error) {
		uid, gid := os.Geteuid(), os.Getegid()
		defer func() {
			// If this fails, Do finds that the thread cannot get its identity back.
			err = errors.Join(err, effective(unix.SYS_SETRESUID, uid), effective(unix.SYS_SETRESGID, gid))
		}()
		if err := effective(unix.SYS_SETRESGID, o.GID); err != nil {
			return err
		}
		if err := effective(unix.SYS_SETRESUID, o.UID); err != nil {
			return err
		}
		return fn()
	})
}

// effective changes the effective id of the calling thread.
func effective(call uintptr, id int) error {
	const same = ^uintptr(0)
	if _, _, e := unix.RawSyscall(call, same, uintptr(uint32(id)), same); e != 0 {
		return fmt.Errorf("take the effective id %d: %w", id, e)
	}
	return nil
}

// assume gives the calling thread the identity of o. The raw system calls act only on
// this thread; those of packages syscall and unix act on all of them.
func (o Owner) assume() error {
	groups := []uint32{uint32(o.GID)}
	if o.Groups != nil {
		groups = groups[:0]
		for _, g := range o.Groups {
			groups = append(groups, uint32(g))
		}
	}
	var p unsafe.Pointer
	if len(groups) > 0 {
		p = unsafe.Pointer(&groups[0])
	}
	if _, _, e := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(p), 0); e != 0 {
		return fmt.Errorf("set supplementary groups %v for file access: %w (CAP_SETGID is needed)", groups, e)
	}
	// setfsgid and setfsuid report no errors: they return the previous id, so
	// asking for an impossible one afterwards shows what is in force.
	_, _, _ = unix.RawSyscall(unix.SYS_SETFSGID, uintptr(uint32(o.GID)), 0, 0)
	if got, _, _ := unix.RawSyscall(unix.SYS_SETFSGID, uintptr(^uint32(0)), 0, 0); uint32(got) != uint32(o.GID) {
		return fmt.Errorf("set filesystem gid %d: still %d (CAP_SETGID is needed)", o.GID, uint32(got))
	}
	_, _, _ = unix.RawSyscall(unix.SYS_SETFSUID, uintptr(uint32(o.UID)), 0, 0)
	if got, _, _ := unix.RawSyscall(unix.SYS_SETFSUID, uintptr(^uint32(0)), 0, 0); uint32(got) != uint32(o.UID) {
		return fmt.Errorf("set filesystem uid %d: still %d (CAP_SETUID is needed)", o.UID, uint32(got))
	}
	return nil
}
