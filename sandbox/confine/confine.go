// Package confine restricts a thread, and all that it starts, to listed parts of the
// file system, by Landlock (landlock(7)). A rule is about the file, not about the path
// to it: a symbolic link, or a name that is swapped between check and use, opens
// nothing that the rules do not allow for its target.
//
// It is for programs that run with the rights of this process, but get file names from
// somebody who must not have those rights.
package confine

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ErrUnsupported is found (errors.Is) in the error if the kernel has no Landlock, or
// does not let processes use it.
var ErrUnsupported = errors.New("this kernel has no Landlock (Linux 5.13, built and booted with it)")

// Rules say what stays allowed. All else cannot be read, written, made, removed or
// executed. A path that does not exist, or that this process may not look at, allows
// nothing.
type Rules struct {
	// Trees are directories in which everything may be read and executed, except what
	// is mounted in or over them: that does not belong to the image. Links are not
	// followed.
	Trees []string
	// Read are files and directories that may be read and executed, with all that is
	// mounted below. Links are followed: the caller is trusted.
	Read []string
	// List are directories whose names, and those of the directories below, may be read.
	// Links are followed.
	List []string
	// Write are files, such as devices, and directories that may be read and written.
	Write []string
	// Change are descriptors of directories in which everything is allowed except to
	// execute.
	Change []int
}

const (
	execute = unix.LANDLOCK_ACCESS_FS_EXECUTE
	look    = unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	// forFiles are the rights that a rule about a file may give.
	forFiles = execute | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	// first are the rights of the first version, of which this is the last.
	first = unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1
)

// version is that of the kernel's Landlock, from 1 on.
func version() (int, error) {
	n, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0, fmt.Errorf("%w: %w", ErrUnsupported, errno)
	}
	return int(n), nil
}

// Supported returns nil if [Rules.Apply] works, else the reason why not.
func Supported() error {
	_, err := version()
	return err
}

// handled are the rights that a version knows (landlock(7), "VERSIONS").
func handled(version int) unix.LandlockRulesetAttr {
	a := unix.LandlockRulesetAttr{Handled_access_fs: first}
	if version >= 2 {
		a.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		a.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 5 {
		a.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if version >= 6 {
		a.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	return a
}

// size of the structure of a version: a kernel refuses one with more than it knows,
// unless the rest is zero.
func size(version int) uintptr {
	var a unix.LandlockRulesetAttr
	switch {
	case version < 4:
		return unsafe.Offsetof(a.Handled_access_net)
	case version < 6:
		return unsafe.Offsetof(a.Scoped)
	}
	return unsafe.Offsetof(a.Quiet_access_fs)
}

// Apply confines the calling thread for good; nothing gives back what it loses. The
// caller holds the thread (runtime.LockOSThread), has set its no_new_privs, and lets it
// end. Programs that the thread starts also can no longer inspect or trace other
// processes, nor, from Landlock version 6 on, signal them or connect to them over
// abstract sockets.
func (r Rules) Apply() error {
	mounts, err := mountPoints()
	if err != nil {
		return err
	}
	return r.apply(mounts)
}

func (r Rules) apply(mounts map[string]bool) error {
	v, err := version()
	if err != nil {
		return err
	}
	attr := handled(v)
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size(v), 0)
	if errno != 0 {
		return fmt.Errorf("make a Landlock ruleset: %w", errno)
	}
	defer func() { _ = unix.Close(int(fd)) }()
	s := ruleset{fd: int(fd), knows: attr.Handled_access_fs}
	if err := s.fill(r, mounts); err != nil {
		return err
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("confine the thread: %w", errno)
	}
	return nil
}

// ruleset is a Landlock ruleset that is being made.
type ruleset struct {
	fd    int
	knows uint64
}

func (s ruleset) fill(r Rules, mounts map[string]bool) error {
	for _, path := range r.Trees {
		if err := s.tree(path, mounts); err != nil {
			return err
		}
	}
	for _, path := range r.Read {
		if err := s.path(path, 0, look|execute); err != nil {
			return err
		}
	}
	for _, path := range r.List {
		if err := s.path(path, 0, unix.LANDLOCK_ACCESS_FS_READ_DIR); err != nil {
			return err
		}
	}
	for _, path := range r.Write {
		if err := s.path(path, 0, s.knows&^execute); err != nil {
			return err
		}
	}
	for _, dir := range r.Change {
		if err := s.allow(dir, s.knows&^execute); err != nil {
			return fmt.Errorf("let a directory be changed: %w", err)
		}
	}
	return nil
}

// path adds a rule for what a path names, if that exists.
func (s ruleset) path(path string, flags int, rights uint64) error {
	fd, err := open(path, flags)
	if err != nil || fd < 0 {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := s.allow(fd, rights); err != nil {
		return fmt.Errorf("let %s be used: %w", path, err)
	}
	return nil
}

// open opens what a path names, only to identify it; the descriptor is negative if it
// does not exist.
func open(path string, flags int) (int, error) {
	for {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|flags, 0)
		switch {
		case err == nil:
			return fd, nil
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EACCES), errors.Is(err, unix.ELOOP):
			return -1, nil
		default:
			return -1, fmt.Errorf("look for %s: %w", path, err)
		}
	}
}

// allow adds a rule for an open file, with those of the rights that a file of its type
// can have.
func (s ruleset) allow(fd int, rights uint64) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
	case unix.S_IFLNK:
		return nil // of a tree; its target counts
	default:
		rights &= forFiles
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights & s.knows, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(s.fd), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
