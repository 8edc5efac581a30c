package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// MoveTo gives the sandbox another place instead of removing it (HTCondor
// src/condor_starter.V6.1/starter.cpp:removeTempExecuteDir). As under the stock starter, it
// is renamed: the place must be on the same volume, and nothing may be there except an empty
// directory. A path that is not absolute begins in EXECUTE.
//
// Unlike there, only root and HTCondor's user get into it. A later job may have the user ID
// of this one. Call MoveTo when no process of the payload is left; after an error, call
// [Sandbox.Remove].
func (s *Sandbox) MoveTo(ctx context.Context, path string) error {
	if err := s.moveTo(path); err != nil {
		return fmt.Errorf("move the sandbox %s to %s: %w", s.dir, path, err)
	}
	s.close()
	if s.apart != "" {
		return removeDir(ctx, s.apart)
	}
	return nil
}

func (s *Sandbox) moveTo(path string) error {
	if s.top < 0 {
		return errors.New("it is closed")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(filepath.Dir(s.dir), path)
	}
	path = filepath.Clean(path)
	if scratch := filepath.Dir(s.dir); s.apart != "" && strings.HasPrefix(path+"/", strings.TrimSuffix(scratch, "/")+"/") {
		return fmt.Errorf("all in %s is removed before the next job; name a place outside of it, on the same volume", scratch)
	}
	parent, err := openTrusted(filepath.Dir(path), s.condor)
	if err != nil {
		return err
	}
	defer closeFD(parent)
	name := filepath.Base(s.dir)
	var made, now unix.Stat_t
	if err := unix.Fstat(s.top, &made); err != nil {
		return err
	}
	if err := unix.Fstatat(s.execute, name, &now, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if made.Dev != now.Dev || made.Ino != now.Ino {
		return errors.New("another directory has its name")
	}
	if err := finishDir(s.top, name, s.condor, 0o700); err != nil {
		return err
	}
	return unix.Renameat(s.execute, name, parent, filepath.Base(path))
}

// maxLinks is the kernel's own limit for one path (path_resolution(7)).
const maxLinks = 40

// openTrusted opens a directory by a path in which only root, HTCondor's user and the
// process's own can change anything: they own each directory and link on the way, and nobody
// else may write to those directories, except to one with the sticky bit.
func openTrusted(path string, condor Owner) (int, error) {
	trusted := func(uid uint32) bool {
		return uid == 0 || int(uid) == os.Geteuid() || condor.UID >= 0 && int(uid) == condor.UID
	}
	at, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: "/", Err: err}
	}
	fail := func(walked string, err error) (int, error) {
		closeFD(at)
		return -1, &fs.PathError{Op: "open", Path: walked, Err: err}
	}
	walked, links := "/", 0
	for rest := strings.Split(path, "/"); len(rest) > 0; {
		step := rest[0]
		rest = rest[1:]
		if step == "" || step == "." {
			continue
		}
		next, err := unix.Openat(at, step, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return fail(filepath.Join(walked, step), err)
		}
		var st unix.Stat_t
		if err := unix.Fstat(next, &st); err != nil {
			closeFD(next)
			return fail(filepath.Join(walked, step), err)
		}
		isLink := st.Mode&unix.S_IFMT == unix.S_IFLNK
		switch open := !isLink && st.Mode&0o022 != 0 && st.Mode&unix.S_ISVTX == 0; {
		case !trusted(st.Uid):
			closeFD(next)
			return fail(filepath.Join(walked, step), fmt.Errorf("it belongs to uid %d, which could lead the starter elsewhere", st.Uid))
		case open:
			closeFD(next)
			return fail(filepath.Join(walked, step), fmt.Errorf("others may write to it (mode %#o), which could lead the starter elsewhere", st.Mode&0o7777))
		}
		if !isLink {
			closeFD(at)
			at, walked = next, filepath.Join(walked, step)
			continue
		}
		target, err := readlinkOf(next)
		closeFD(next)
		if links++; err == nil && links > maxLinks {
			err = unix.ELOOP
		}
		if err != nil {
			return fail(filepath.Join(walked, step), err)
		}
		if strings.HasPrefix(target, "/") {
			root, err := unix.Open("/", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			if err != nil {
				return fail("/", err)
			}
			closeFD(at)
			at, walked = root, "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return at, nil
}

// readlinkOf reads the link that a descriptor stands for.
func readlinkOf(fd int) (string, error) {
	var buf [unix.PathMax]byte
	n, err := unix.Readlinkat(fd, "", buf[:])
	return string(buf[:max(n, 0)]), err
}
