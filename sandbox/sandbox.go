package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/sandbox/beneath"
	"podstarter/sandbox/commonfiles"
)

// Dir returns the top directory of the activation, dir_<pid>.
func (s *Sandbox) Dir() string { return s.dir }

// HTCondor returns the directory in which the startd leaves .update.ad.
func (s *Sandbox) HTCondor() string { return s.htcondor }

// User returns the directory for files about the job, such as .chirp.config.
func (s *Sandbox) User() string { return s.user }

// Scratch returns the job's working directory.
func (s *Sandbox) Scratch() string { return s.scratch }

// Payload returns the owner of the scratch directory.
func (s *Sandbox) Payload() Owner { return s.payload }

// Root is the scratch directory, to reach files in it as [Sandbox.Payload]. It is
// closed by Remove.
func (s *Sandbox) Root() *beneath.Root { return s.inside }

// OpenScratch returns the scratch directory that Create made, even if something else
// has its name by now. The descriptor only identifies it: nothing can be read through
// it (O_PATH). The caller closes it.
func (s *Sandbox) OpenScratch() (*os.File, error) {
	fd, err := unix.FcntlInt(uintptr(s.inside.FD()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open the sandbox %s: %w", s.scratch, err)
	}
	return os.NewFile(uintptr(fd), s.scratch), nil
}

// RemoveTree removes whatever has this name directly in the scratch directory, with
// all that is below it. Nothing is followed.
func (s *Sandbox) RemoveTree(ctx context.Context, name string) error {
	return beneath.RemoveAll(ctx, s.inside.FD(), name)
}

// WriteFile writes a file below the scratch directory as the payload. The file appears
// whole or not at all: it is written under another name and renamed. Missing
// directories are made with mode 0700. A symbolic link of that name is replaced, not
// followed.
func (s *Sandbox) WriteFile(name string, data []byte, mode fs.FileMode) error {
	return s.writeFile(s.inside, name, data, mode)
}

// WriteUserFile is WriteFile below the user directory.
func (s *Sandbox) WriteUserFile(name string, data []byte, mode fs.FileMode) error {
	return s.writeFile(s.inUser, name, data, mode)
}

func (s *Sandbox) writeFile(in *beneath.Root, name string, data []byte, mode fs.FileMode) error {
	err := s.payload.Do(func() error { return in.Replace(name, data, uint32(mode.Perm())) })
	if err != nil {
		return fmt.Errorf("write %s into the sandbox: %w", filepath.Join(in.Path(), name), err)
	}
	return nil
}

// Mkdir makes a directory below the scratch directory as the payload, with exactly this
// mode. An existing directory is not an error.
func (s *Sandbox) Mkdir(name string, mode fs.FileMode) error {
	return s.payload.Do(func() error {
		err := s.inside.Mkdir(name, uint32(mode.Perm()))
		if errors.Is(err, fs.ErrExist) {
			if st, e := s.inside.Stat(name); e == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
				return nil
			}
		}
		return err
	})
}

// ReadFile reads a regular file below the scratch directory as the payload,
// at most limit bytes of it.
func (s *Sandbox) ReadFile(name string, limit int64) ([]byte, error) {
	var data []byte
	err := s.payload.Do(func() error {
		f, _, err := s.inside.OpenRead(name)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		data, err = io.ReadAll(io.LimitReader(f, limit))
		return err
	})
	return data, err
}

// Chmod sets the mode of a file below the scratch directory as the payload.
func (s *Sandbox) Chmod(name string, mode fs.FileMode) error {
	return s.payload.Do(func() error { return s.inside.Chmod(name, uint32(mode.Perm())) })
}

// CreateFile makes a new file directly in the scratch directory, as the payload, for
// writing. The caller closes it; a link or file of that name is an error.
func (s *Sandbox) CreateFile(name string, mode fs.FileMode) (*os.File, error) {
	var created *os.File
	err := s.payload.Do(func() error {
		f, err := s.inside.CreateNew(name)
		if err != nil {
			return err
		}
		if err := f.Chmod(uint32(mode.Perm())); err != nil {
			return errors.Join(err, f.Close())
		}
		created = os.NewFile(uintptr(f.FD()), filepath.Join(s.scratch, name))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("create %s in the sandbox: %w", filepath.Join(s.scratch, name), err)
	}
	return created, nil
}

// RenameFile gives a regular file directly in the scratch directory another name in it,
// as the payload. For anything else the error wraps [beneath.ErrNotRegular].
func (s *Sandbox) RenameFile(from, to string) error {
	return s.payload.Do(func() error {
		st, err := s.inside.Lstat(from)
		if err != nil {
			return err
		}
		if st.Mode&unix.S_IFMT != unix.S_IFREG {
			return &fs.PathError{Op: "rename", Path: from, Err: beneath.ErrNotRegular}
		}
		return s.inside.Rename(from, to)
	})
}

// RemoveFile removes a file or an empty directory below the scratch directory
// as the payload.
func (s *Sandbox) RemoveFile(name string) error {
	return s.payload.Do(func() error { return s.inside.Remove(name) })
}

// ModTime returns when a file below the scratch directory was last written
// to, for StdoutMtime and StderrMtime.
func (s *Sandbox) ModTime(name string) (time.Time, error) {
	var t time.Time
	err := s.payload.Do(func() error {
		st, err := s.inside.Stat(name)
		if err == nil {
			t = time.Unix(st.Mtim.Unix())
		}
		return err
	})
	return t, err
}

// Usage returns the size of the activation's directory in KiB, rounded up, and
// the number of files and directories in it: what HTCondor publishes as
// DiskUsage and ScratchDirFileCount (src/condor_starter.V6.1/jic_shadow.cpp:
// publishUpdateAd). Common files that a job has as hard links are counted where they are
// kept. It takes about a second for a million of them; when ctx ends
// first, it returns a lower bound together with an error that wraps
// [beneath.ErrIncomplete].
func (s *Sandbox) Usage(ctx context.Context) (kib, files int64, err error) {
	dir := s.top
	if s.apart != "" {
		dir = s.execute // all of the volume is the payload's
	}
	skip := commonfiles.Elsewhere
	if s.keeps {
		skip = nil
	}
	u, err := beneath.Measure(ctx, dir, 0, skip)
	if err != nil {
		err = fmt.Errorf("measure %s: %w", s.dir, err)
	}
	return (u.Bytes + 1023) / 1024, u.Files, err
}

// Remove removes the sandbox with everything that the payload left in it, whatever its
// modes, depth and number; it follows no link and crosses no mount. Call it when no
// process of the payload is left. The error names what could not be removed. The
// sandbox cannot be used afterwards, but Remove may be called again.
func (s *Sandbox) Remove(ctx context.Context) error {
	s.close()
	remove := func() error { return removeDir(ctx, s.dir) }
	if s.apart != "" {
		remove = func() error { return emptyDir(ctx, filepath.Dir(s.dir)) }
	}
	err := remove()
	if (errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM)) && s.payload.Switches() {
		// Root may have no special rights here (a root-squashing file server,
		// a container without CAP_DAC_OVERRIDE); the owner has some.
		if s.payload.Do(remove) == nil {
			err = nil
		} else {
			err = remove()
		}
	}
	if s.apart != "" {
		err = errors.Join(err, removeDir(ctx, s.apart))
	}
	if err != nil {
		return fmt.Errorf("remove the sandbox %s: %w", s.dir, err)
	}
	return nil
}

// emptyDir removes all that is in a directory whose path is trusted.
func emptyDir(ctx context.Context, path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open the directory of sandboxes", Path: path, Err: err}
	}
	defer closeFD(fd)
	return beneath.Empty(ctx, fd)
}

// removeDir removes a directory, whose parent's path is trusted.
func removeDir(ctx context.Context, path string) error {
	parent, err := unix.Open(filepath.Dir(path), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open the directory of sandboxes", Path: filepath.Dir(path), Err: err}
	}
	defer closeFD(parent)
	return beneath.RemoveAll(ctx, parent, filepath.Base(path))
}

// WriteTopFile writes a file into the top directory of the activation, where the
// payload may read it, but not change it, except in a flat layout or if the process is
// not root. It returns the file's path.
func (s *Sandbox) WriteTopFile(name string, data []byte, mode fs.FileMode) (string, error) {
	if s.top < 0 {
		return "", fmt.Errorf("write %s: the sandbox is closed", name)
	}
	at := filepath.Join(s.dir, name)
	write := func() error {
		_ = unix.Unlinkat(s.top, name, 0)
		fd, err := unix.Openat(s.top, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(mode.Perm()))
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(fd), at)
		_, err = f.Write(data)
		if err == nil {
			err = unix.Fchmod(fd, uint32(mode.Perm()))
		}
		return errors.Join(err, f.Close())
	}
	err := write()
	if (errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM)) && s.payload.Switches() {
		err = s.payload.Do(write) // a directory that refuses root; see Create
	}
	if err != nil {
		return "", fmt.Errorf("write %s: %w", at, err)
	}
	return at, nil
}
