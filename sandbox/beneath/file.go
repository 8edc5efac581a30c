package beneath

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"podstarter/internal/atomicfile"
)

// File is an open regular file. It is not an *os.File: no finalizer, no
// poller, so opening and closing a small file costs two system calls.
type File struct {
	fd   int
	name string
	mode uint32 // permission bits, as long as nobody else changes them
}

// FD returns the descriptor, valid until Close.
func (f *File) FD() int { return f.fd }

// Read implements io.Reader.
func (f *File) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, err := retry(func() (int, error) { return unix.Read(f.fd, p) })
	switch {
	case err != nil:
		return 0, &fs.PathError{Op: "read", Path: f.name, Err: err}
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Seek implements io.Seeker.
func (f *File) Seek(offset int64, whence int) (int64, error) {
	at, err := unix.Seek(f.fd, offset, whence)
	if err != nil {
		return 0, &fs.PathError{Op: "seek", Path: f.name, Err: err}
	}
	return at, nil
}

// Write implements io.Writer.
func (f *File) Write(p []byte) (int, error) {
	done := 0
	for done < len(p) {
		n, err := retry(func() (int, error) { return unix.Write(f.fd, p[done:]) })
		if err == nil && n == 0 {
			err = unix.EIO
		}
		if err != nil {
			return done, &fs.PathError{Op: "write", Path: f.name, Err: err}
		}
		done += n
	}
	return done, nil
}

// Chmod sets the permission bits, whatever the umask. It does nothing if the
// file was created with them.
func (f *File) Chmod(mode uint32) error {
	if mode &= 0o7777; mode == f.mode {
		return nil
	}
	if err := unix.Fchmod(f.fd, mode); err != nil {
		return &fs.PathError{Op: "chmod", Path: f.name, Err: err}
	}
	f.mode = mode
	return nil
}

// Stat returns what fstat(2) says.
func (f *File) Stat() (unix.Stat_t, error) {
	var st unix.Stat_t
	if err := unix.Fstat(f.fd, &st); err != nil {
		return st, &fs.PathError{Op: "stat", Path: f.name, Err: err}
	}
	return st, nil
}

// Sequential tells the kernel that the file will be read from its beginning to
// its end, so that it reads further ahead (posix_fadvise(2)).
func (f *File) Sequential() { _ = unix.Fadvise(f.fd, 0, 0, unix.FADV_SEQUENTIAL) }

// Close closes the file. It reports what close(2) reports: on some file
// systems that is the only word about data that could not be stored.
func (f *File) Close() error {
	if err := unix.Close(f.fd); err != nil && !errors.Is(err, unix.EINTR) {
		return &fs.PathError{Op: "close", Path: f.name, Err: err}
	}
	return nil
}

// regular makes a File of a descriptor if it is a regular file.
func regular(op, name string, fd int) (*File, unix.Stat_t, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	if err == nil {
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			return &File{fd: fd, name: name, mode: st.Mode & 0o7777}, st, nil
		case unix.S_IFDIR:
			err = unix.EISDIR
		default:
			err = ErrNotRegular
		}
	}
	closeFD(fd)
	return nil, st, &fs.PathError{Op: op, Path: name, Err: err}
}

// OpenRead opens a regular file for reading and says what it is. Symbolic
// links that stay beneath the root are followed. Anything that is not a
// regular file is an error ([ErrNotRegular], or EISDIR for a directory);
// nothing blocks.
func (r *Root) OpenRead(name string) (*File, unix.Stat_t, error) {
	fd, err := r.open("open", name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		// A socket, or a device without a driver, cannot even be opened.
		if errors.Is(err, unix.ENXIO) {
			err = &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
		}
		return nil, unix.Stat_t{}, err
	}
	return regular("open", name, fd)
}

// OpenTree opens a regular file or a directory for reading, as [Root.OpenRead] does, for a
// program that gets it as an open file.
func (r *Root) OpenTree(name string) (*os.File, error) {
	fd, err := r.open("open", name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if errors.Is(err, unix.ENXIO) {
		err = &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	err = unix.Fstat(fd, &st)
	if kind := st.Mode & unix.S_IFMT; err == nil && kind != unix.S_IFREG && kind != unix.S_IFDIR {
		err = ErrNotRegular
	}
	if err == nil {
		err = unix.SetNonblock(fd, false) // the program shares the flag
	}
	if err != nil {
		closeFD(fd)
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Create opens a regular file for writing. A new file gets these permission bits less
// the umask; an existing one is emptied and keeps its own. Use Chmod to be sure.
// Missing parent directories are made with mode 0700. Symbolic links that stay beneath
// the root are followed.
func (r *Root) Create(name string, mode uint32) (*File, error) {
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_TRUNC | unix.O_NONBLOCK | unix.O_NOCTTY
	mode &= 0o777
	fd, err := r.open("create", name, flags, mode)
	if errors.Is(err, unix.ENOENT) {
		if dir, ok := parent(name); ok {
			if err := r.MkdirAll(dir, 0o700); err != nil {
				return nil, err
			}
			fd, err = r.open("create", name, flags, mode)
		}
	}
	if err != nil {
		if errors.Is(err, unix.ENXIO) { // a FIFO that nobody reads, a socket
			err = &fs.PathError{Op: "create", Path: name, Err: ErrNotRegular}
		}
		return nil, err
	}
	f, _, err := regular("create", name, fd)
	return f, err
}

// Replace puts a regular file with exactly these permission bits in place in one
// step; see package atomicfile. Missing parent directories are made with mode 0700. A
// symbolic link of that name is replaced, not followed.
func (r *Root) Replace(name string, data []byte, mode uint32) error {
	replace := func() error {
		return r.inParent("replace", name, func(dir int, last string) error {
			return atomicfile.ReplaceAt(dir, last, data, atomicfile.Options{Mode: fs.FileMode(mode)})
		})
	}
	err := replace()
	if dir, ok := parent(name); ok && errors.Is(err, unix.ENOENT) {
		if err = r.MkdirAll(dir, 0o700); err == nil {
			err = replace()
		}
	}
	return err
}

// CreateNew opens a new regular file for writing, with mode 0600. It fails with
// EEXIST if the name is taken.
func (r *Root) CreateNew(name string) (*File, error) {
	fd, err := r.open("create", name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	f, _, err := regular("create", name, fd)
	return f, err
}

// parent returns the directory part of a name, false if there is none.
func parent(name string) (string, bool) {
	i := strings.LastIndexByte(strings.TrimRight(name, "/"), '/')
	if i <= 0 {
		return "", false
	}
	return name[:i], true
}

// inParent calls do with the directory that holds the last step of name. The
// directory is reached through links that stay beneath; the last step is not
// looked at.
func (r *Root) inParent(op, name string, do func(dir int, last string) error) error {
	trimmed := strings.TrimRight(name, "/")
	dir, last := ".", trimmed
	if i := strings.LastIndexByte(trimmed, '/'); i >= 0 {
		dir, last = trimmed[:i], trimmed[i+1:]
		if dir == "" {
			dir = "/"
		}
	}
	switch last {
	case "", ".":
		return &fs.PathError{Op: op, Path: name, Err: unix.EEXIST}
	case "..":
		return &fs.PathError{Op: op, Path: name, Err: unix.EINVAL}
	}
	fd, err := r.open(op, dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer closeFD(fd)
	if err := do(fd, last); err != nil {
		return &fs.PathError{Op: op, Path: name, Err: err}
	}
	return nil
}

// Mkdir makes a directory with exactly these permission bits, whatever the
// umask. It fails with EEXIST if the name is taken.
func (r *Root) Mkdir(name string, mode uint32) error {
	return r.inParent("make directory", name, func(dir int, last string) error {
		return mkdirExact(dir, last, mode)
	})
}

func mkdirExact(dir int, name string, mode uint32) error {
	mode &= 0o777
	// With the owner's bits set at first, it can be opened below.
	if err := unix.Mkdirat(dir, name, mode|0o700); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if st.Mode&0o777 == mode {
		return nil
	}
	fd, err := retry(func() (int, error) {
		return unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return err
	}
	defer closeFD(fd)
	return unix.Fchmod(fd, mode)
}

// MkdirAll makes a directory and the missing ones above it, all with these permission
// bits. It does not change those that exist.
func (r *Root) MkdirAll(name string, mode uint32) error {
	if len(name) >= unix.PathMax {
		return &fs.PathError{Op: "make directory", Path: name[:64] + "...", Err: unix.ENAMETOOLONG}
	}
	for i := 1; i <= len(name); i++ {
		if i < len(name) && name[i] != '/' {
			continue
		}
		switch err := r.Mkdir(name[:i], mode); {
		case err == nil, errors.Is(err, unix.EEXIST):
		case errors.Is(err, unix.EINVAL) && strings.HasSuffix(name[:i], ".."):
			// The caller goes up again; opening what is below this directory decides.
		default:
			return err
		}
	}
	return nil
}

// Remove removes a file, link or empty directory.
func (r *Root) Remove(name string) error {
	return r.inParent("remove", name, func(dir int, last string) error {
		err := unix.Unlinkat(dir, last, 0)
		if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) {
			if e := unix.Unlinkat(dir, last, unix.AT_REMOVEDIR); !errors.Is(e, unix.ENOTDIR) {
				err = e
			}
		}
		return err
	})
}

// Link makes a hard link of this name to a file in another directory that the calling
// thread may reach and trusts: the last step of from is not followed. It fails with EEXIST
// if the name is taken.
func (r *Root) Link(dir *os.File, from, name string) error {
	return r.inParent("link", name, func(to int, last string) error {
		return unix.Linkat(int(dir.Fd()), from, to, last, 0)
	})
}

// Rename gives a file beneath the root another name beneath it.
func (r *Root) Rename(from, to string) error {
	return r.inParent("rename", from, func(dir int, last string) error {
		return r.inParent("rename", to, func(toDir int, toLast string) error {
			return unix.Renameat(dir, last, toDir, toLast)
		})
	})
}

// Chmod sets the permission bits of the file or directory that name leads to.
func (r *Root) Chmod(name string, mode uint32) error {
	fd, err := r.open("chmod", name, unix.O_PATH, 0)
	if err != nil {
		return err
	}
	defer closeFD(fd)
	// fchmod(2) refuses O_PATH descriptors, and /proc/self is closed to this
	// thread; fchmodat(2) on the parent would follow a link. Linux 6.6 has
	// fchmodat2 with AT_EMPTY_PATH; before that, open it for real.
	err = unix.Fchmodat(fd, "", mode&0o7777, unix.AT_EMPTY_PATH)
	if err != nil {
		var real int
		real, err = r.open("chmod", name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
		if err != nil {
			return err
		}
		defer closeFD(real)
		err = unix.Fchmod(real, mode&0o7777)
	}
	if err != nil {
		return &fs.PathError{Op: "chmod", Path: name, Err: err}
	}
	return nil
}

// Stat says what name leads to. It follows links that stay beneath the root.
func (r *Root) Stat(name string) (unix.Stat_t, error) { return r.stat(name, 0) }

// Lstat is Stat, but does not follow a link at the end of the name.
func (r *Root) Lstat(name string) (unix.Stat_t, error) { return r.stat(name, unix.O_NOFOLLOW) }

func (r *Root) stat(name string, extra int) (unix.Stat_t, error) {
	var st unix.Stat_t
	fd, err := r.open("stat", name, unix.O_PATH|extra, 0)
	if err != nil {
		return st, err
	}
	defer closeFD(fd)
	if err := unix.Fstat(fd, &st); err != nil {
		return st, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	return st, nil
}

// Now returns the time that the root's file system would give a file that changes now.
// That clock has its own resolution, and on a network file system it is another
// machine's. Now marks the root directory itself as modified.
func (r *Root) Now() (unix.Timespec, error) {
	now := []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}}
	var st unix.Stat_t
	err := unix.UtimesNanoAt(r.fd, ".", now, 0)
	if err == nil {
		err = unix.Fstatat(r.fd, ".", &st, 0)
	}
	if err != nil {
		return unix.Timespec{}, &fs.PathError{Op: "read the clock of the file system of", Path: r.path, Err: err}
	}
	return st.Ctim, nil
}

// Readlink returns the target of a symbolic link.
func (r *Root) Readlink(name string) (string, error) {
	var target string
	err := r.inParent("read link", name, func(dir int, last string) (err error) {
		target, err = readlink(dir, last)
		return err
	})
	return target, err
}
