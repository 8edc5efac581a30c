package daemonlog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/rescue"
)

// Options say where lines go.
type Options struct {
	Path  string
	Flags Flags
	// TimeFormat is a format of strftime(3); "" is HTCondor's default.
	TimeFormat string
	// MaxSize is the size in bytes at which the file is rotated before the next
	// line; 0 means never.
	MaxSize int64
	// MaxAge is the length of a period; the file is rotated when a new period
	// begins. 0 means never.
	MaxAge time.Duration
	// Keep is how many rotated files are kept. With 1 or less there is one,
	// PATH.old; otherwise each has the time in its name.
	Keep int
	// Truncate empties the file when it is opened.
	Truncate bool
	// Crash makes the Go runtime write its last words to the file when it ends the
	// process (debug.SetCrashOutput). Only one file of a process can have them.
	Crash bool
	// If Switch is set, UID and GID own the file, and it is opened with their
	// rights: the directory is theirs, so root must not follow links in it.
	Switch   bool
	UID, GID int

	// PID and Now replace the process id and the clock in tests.
	PID int
	Now func() time.Time
}

// Open opens the starter's log.
func Open(opt Options) (*Log, error) {
	f, err := openFile(opt)
	if err != nil {
		return nil, err
	}
	l := &Log{pid: opt.PID, now: opt.Now, files: []*file{f}}
	if l.pid == 0 {
		l.pid = os.Getpid()
	}
	if l.now == nil {
		l.now = time.Now
	}
	return l, nil
}

// file is one log file.
type file struct {
	Options
	flags      Flags
	timeFormat string
	fd         int
	given      *os.File // opened by somebody else, in place of fd; never set aside
	written    int64    // bytes, to given
	period     int64    // MaxAge: number of the period that the file belongs to
	before     time.Time
	beforeErr  error
}

func openFile(opt Options) (*file, error) {
	f := &file{Options: opt, flags: opt.Flags, timeFormat: opt.TimeFormat, fd: -1}
	if f.timeFormat == "" {
		f.timeFormat = defaultTimeFormat
	}
	var st unix.Stat_t
	if err := unix.Stat(opt.Path, &st); err != nil {
		f.beforeErr = err
		f.period = f.periodOf(time.Now())
	} else {
		f.before = time.Unix(max(st.Mtim.Sec, st.Ctim.Sec), 0)
		f.period = f.periodOf(time.Unix(st.Mtim.Sec, 0))
	}
	if err := f.open(opt.Truncate); err != nil {
		return nil, err
	}
	return f, nil
}

func (f *file) open(truncate bool) error {
	flags := unix.O_WRONLY | unix.O_APPEND | unix.O_CREAT | unix.O_CLOEXEC | unix.O_NOCTTY | unix.O_NONBLOCK
	if truncate {
		flags |= unix.O_TRUNC
	}
	return f.asOwner(func() error {
		fd, err := unix.Open(f.Path, flags, 0o644)
		if err != nil {
			return fmt.Errorf("opening the log %s as user %d: %w; its directory must exist and be writable for that user", f.Path, f.owner(), err)
		}
		f.fd = fd
		if f.Crash {
			f.takeCrash()
		}
		return nil
	})
}

// takeCrash makes the runtime write to the file that is open now. The runtime has
// a descriptor of its own. If none is left, the log goes on without it.
func (f *file) takeCrash() {
	fd, err := unix.FcntlInt(uintptr(f.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return
	}
	own := os.NewFile(uintptr(fd), f.Path)
	_ = debug.SetCrashOutput(own, debug.CrashOptions{})
	own.Close()
}

func (f *file) owner() int {
	if f.Switch {
		return f.UID
	}
	return os.Geteuid()
}

func (f *file) close() error {
	if f.given != nil {
		return f.given.Close()
	}
	if f.fd < 0 {
		return nil
	}
	err := unix.Close(f.fd)
	f.fd = -1
	return err
}

// write appends one line with one call, which O_APPEND makes indivisible
// (write(2)).
func (f *file) write(line []byte, now time.Time) error {
	if f.given != nil {
		return f.add(line)
	}
	if f.fd < 0 {
		return fmt.Errorf("the log %s is closed", f.Path)
	}
	rotateErr := f.rotateIfDue(now)
	for {
		_, err := unix.Write(f.fd, line)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("writing to the log %s: %w", f.Path, err)
		}
		return rotateErr
	}
}

// add appends one line to a file that the caller of Attach opened.
func (f *file) add(line []byte) error {
	if f.MaxSize > 0 && f.written+int64(len(line)) > f.MaxSize {
		return nil
	}
	n, err := f.given.Write(line)
	f.written += int64(n)
	if err != nil {
		return fmt.Errorf("writing to the log %s: %w", f.Path, err)
	}
	return nil
}

func (f *file) periodOf(t time.Time) int64 {
	if f.MaxAge < time.Second {
		return 0
	}
	return t.Unix() / int64(f.MaxAge/time.Second)
}

// rotateIfDue rotates the file if it is too large or too old. A lock on the file
// keeps two starters from rotating at once: the second one finds that the path
// already names another file, and opens that.
func (f *file) rotateIfDue(now time.Time) error {
	var st unix.Stat_t
	if err := unix.Fstat(f.fd, &st); err != nil {
		return fmt.Errorf("looking at the log %s: %w", f.Path, err)
	}
	period := f.periodOf(now)
	if (f.MaxSize <= 0 || st.Size < f.MaxSize) && period <= f.period {
		return nil
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil
	}
	switch err := unix.Flock(f.fd, unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return nil // somebody else is at it; the next line finds it done
	case err != nil:
		return fmt.Errorf("locking the log %s: %w", f.Path, err)
	}
	f.period = period
	old := f.fd
	defer func() { _ = unix.Close(old) }() // releases the lock, after the new file is there
	var there unix.Stat_t
	if err := unix.Stat(f.Path, &there); err != nil || there.Ino == st.Ino && there.Dev == st.Dev {
		if err := f.setAside(now); err != nil {
			f.fd, old = old, -1
			_ = unix.Flock(f.fd, unix.LOCK_UN)
			if errors.Is(err, unix.EEXIST) {
				return nil // twice in a second; the next one will do
			}
			return err
		}
	}
	f.fd = -1
	if err := f.open(false); err != nil {
		f.fd, old = old, -1 // better the old file than none
		_ = unix.Flock(f.fd, unix.LOCK_UN)
		return err
	}
	return nil
}

func (f *file) setAside(now time.Time) error {
	target := f.Path + ".old"
	if f.Keep > 1 {
		target = f.Path + "." + now.Format("20060102T150405")
	}
	flags := uint(0)
	if f.Keep > 1 {
		flags = unix.RENAME_NOREPLACE
	}
	return f.asOwner(func() error {
		err := unix.Renameat2(unix.AT_FDCWD, f.Path, unix.AT_FDCWD, target, flags)
		if errors.Is(err, unix.EINVAL) { // not every filesystem knows the flag
			err = unix.Rename(f.Path, target)
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("setting the log %s aside as %s: %w", f.Path, target, err)
		}
		if f.Keep > 1 {
			f.removeOldest()
		}
		return nil
	})
}

// removeOldest deletes the oldest rotated files, until Keep are left. Their names
// sort by time.
func (f *file) removeOldest() {
	names, _ := filepath.Glob(globLiteral(f.Path) + ".[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]T[0-9][0-9][0-9][0-9][0-9][0-9]")
	slices.Sort(names)
	for len(names) > f.Keep {
		_ = unix.Unlink(names[0])
		names = names[1:]
	}
}

func globLiteral(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// asOwner calls do with the owner's filesystem ids, so that the kernel checks
// permissions for the owner and new files belong to it. Those ids are a
// thread's own (setfsuid(2)); a thread that does not get its own ids back ends
// with its goroutine.
func (f *file) asOwner(do func() error) error {
	if !f.Switch || os.Geteuid() != 0 {
		return do()
	}
	result := make(chan error, 1)
	rescue.Go(func() {
		runtime.LockOSThread()
		gid, _ := unix.SetfsgidRetGid(f.GID)
		uid, _ := unix.SetfsuidRetUid(f.UID)
		// setfsuid does not report an error. Setting an impossible id returns the
		// id that is in force.
		err := fmt.Errorf("cannot act as user %d to open the log %s; CAP_SETUID is needed", f.UID, f.Path)
		if now, _ := unix.SetfsuidRetUid(-1); now == f.UID {
			err = rescue.Do(do)
		}
		_ = unix.Setfsuid(uid)
		_ = unix.Setfsgid(gid)
		if now, _ := unix.SetfsuidRetUid(-1); now == uid {
			runtime.UnlockOSThread()
		}
		result <- err
	})
	return <-result
}
