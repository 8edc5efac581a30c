package agent

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"podstarter/payload"
)

// separateMounts keeps from the machine what is mounted in this process's mount namespace. What the machine mounts later still comes
// here, as with the stock starter (daemon_core.cpp:CreateProcessForkit::exec).
func separateMounts() error {
	return unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, "")
}

const sharedMemory = "/dev/shm"

// setMounts makes the mounts that a start asks for, unless an earlier one has.
func (a *agent) setMounts(want *payload.Mounts, uid int) *payload.StartError {
	switch {
	case want == nil || a.mounts != nil && reflect.DeepEqual(want, a.mounts):
		return nil
	case !a.ownMounts:
		return mountFailure(payload.StageMount, want.Sandbox, unix.EPERM, "this wrapper has the machine's mount namespace, or that of its container")
	case a.mounts != nil:
		return mountFailure(payload.StageMount, want.Sandbox, unix.EBUSY, "other directories are mounted already")
	}
	// All is looked up before anything is mounted: from then on, the payload decides on what is found there.
	var fds []int
	defer func() {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}()
	sandbox, err := unix.Open(want.Sandbox, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return mountFailure(payload.StageMount, want.Sandbox, err, "")
	}
	fds = append(fds, sandbox)
	is, err := os.Readlink(fdPath(sandbox)) // a directory above it may be a link
	if err != nil {
		return mountFailure(payload.StageMount, want.Sandbox, err, "")
	}
	var places []place
	for _, dir := range want.Dirs {
		from, err := openOwn(sandbox, dir[1:], uid)
		if err != nil {
			return mountFailure(payload.StageScratch, want.Sandbox+dir, err, "")
		}
		fds = append(fds, from)
		p, err := openPlace(dir, want.Sandbox, is)
		if err != nil {
			return mountFailure(payload.StageMount, dir, err, "")
		}
		fds = append(fds, p.fd)
		if slices.ContainsFunc(places, p.same) {
			continue // another name for a directory that has been named
		}
		p.from = from
		places = append(places, p)
	}
	shm := -1
	if want.SharedMemory {
		shm, err = unix.Open(sharedMemory, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return mountFailure(payload.StageMount, sharedMemory, err, "")
		}
		if err == nil {
			fds = append(fds, shm)
		}
	}
	a.mounts = new(payload.Mounts) // if it fails, half of it may be done
	for _, p := range places {
		if err := unix.Mount(fdPath(p.from), fdPath(p.fd), "", unix.MS_BIND, ""); err != nil {
			return mountFailure(payload.StageMount, p.path, err, "")
		}
	}
	if shm >= 0 {
		if err := unix.Mount("tmpfs", fdPath(shm), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"); err != nil {
			return mountFailure(payload.StageMount, sharedMemory, err, "")
		}
	}
	a.mounts = want
	return nil
}

// place is a directory of the machine in whose place something is mounted.
type place struct {
	path     string // as it was asked for
	fd, from int
	dev, ino uint64
}

func (p place) same(other place) bool { return p.dev == other.dev && p.ino == other.ino }

// openPlace opens a directory of the machine, also through symbolic links, which are the machine's. It refuses what this process
// itself needs, wherever the links lead: a job may have had a say in the path. The sandbox is given by all its names.
func openPlace(path string, sandbox ...string) (place, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return place{}, err
	}
	p := place{path: path, fd: fd}
	var st unix.Stat_t
	is, err := os.Readlink(fdPath(fd))
	if err == nil {
		err = unix.Fstat(fd, &st)
	}
	p.dev, p.ino = st.Dev, st.Ino
	if err == nil && !mayHide(is, sandbox...) {
		err = fmt.Errorf("%w: nothing may be mounted over %s, which is needed to run the job", unix.EINVAL, is)
	}
	if err != nil {
		_ = unix.Close(fd)
	}
	return p, err
}

// mayHide says whether a directory may have another one in its place. The wrapper finds processes by /proc, and devices in /dev.
func mayHide(dir string, sandbox ...string) bool {
	for _, needed := range append([]string{procfs, "/sys"}, sandbox...) {
		if payload.Below(needed, dir) || payload.Below(dir, needed) {
			return false
		}
	}
	return !payload.Below(os.DevNull, dir)
}

// openOwn opens a directory of the payload's user, through no link that the payload may have made, and into no mount.
func openOwn(sandbox int, name string, uid int) (int, error) {
	fd, err := unix.Openat2(sandbox, name, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	})
	if err != nil {
		return -1, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && int(st.Uid) != uid {
		err = fmt.Errorf("%w: it belongs to user %d, not to the job's", unix.EPERM, st.Uid)
	}
	if err != nil {
		_ = unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

func fdPath(fd int) string { return procfs + "/self/fd/" + strconv.Itoa(fd) }

func mountFailure(stage, path string, err error, detail string) *payload.StartError {
	var errno syscall.Errno
	_ = errors.As(err, &errno)
	if detail == "" {
		detail = err.Error()
	}
	return &payload.StartError{Stage: stage, Path: path, Errno: errno, Detail: detail}
}
