// Package atomicfile replaces files in one step: whoever reads a file by its name,
// without a lock, finds the old contents or the new ones, whole.
//
// It works beneath an open directory and takes names without a slash, so that no
// symbolic link leads a write anywhere else. A link that has the name is replaced,
// not followed.
package atomicfile

import (
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Options say what file is put in place.
type Options struct {
	// Mode is the file's permission bits, whatever the umask.
	Mode fs.FileMode

	// Give is called for the new file while it is empty, to give it to somebody
	// else; nil leaves it to the calling thread's user. The descriptor stays
	// Replace's.
	Give func(fd int) error

	// Temporary is the name of the file until it is in place. It is for callers of
	// whom one at a time writes: a crash leaves at most one such file, which the
	// next call removes. Anything else of that name is an error. Empty stands for a random name, with a dot at its front,
	// which any number of callers may use at once.
	Temporary string
}

// Replace puts a file with this name and contents into a directory. After an error
// the file is what it was, and nothing else is left. The contents are not forced to
// the disk: a crash of the machine may lose them, a crash of this process does not.
func Replace(dir *os.Root, name string, data []byte, o Options) error {
	at, err := dir.Open(".")
	if err != nil {
		return &fs.PathError{Op: "replace", Path: name, Err: err}
	}
	defer at.Close()
	return ReplaceAt(int(at.Fd()), name, data, o)
}

// ReplaceAt is Replace in the directory of a descriptor, which may be one that
// nothing can be read by (O_PATH).
func ReplaceAt(dir int, name string, data []byte, o Options) error {
	temporary := o.Temporary
	if temporary == "" {
		temporary = "." + strings.TrimPrefix(name, ".") + "." + strconv.FormatUint(rand.Uint64(), 36)
	}
	for _, n := range []string{name, temporary} {
		if n == "" || n == "." || n == ".." || strings.ContainsAny(n, "/\x00") {
			return &fs.PathError{Op: "replace", Path: n, Err: unix.EINVAL}
		}
	}
	if o.Temporary != "" && isRegular(dir, temporary) {
		_ = unix.Unlinkat(dir, temporary, 0) // of a caller that died; if it stays, the next step fails
	}
	const flags = unix.O_WRONLY | unix.O_CREAT | unix.O_EXCL | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Openat(dir, temporary, flags, 0o600)
	if err != nil {
		return &fs.PathError{Op: "replace: create", Path: temporary, Err: err}
	}
	f := os.NewFile(uintptr(fd), temporary)
	if err = errors.Join(fill(f, fd, data, o), f.Close()); err == nil {
		err = unix.Renameat(dir, temporary, dir, name)
	}
	if err != nil {
		_ = unix.Unlinkat(dir, temporary, 0)
		return &fs.PathError{Op: "replace", Path: name, Err: err}
	}
	return nil
}

func isRegular(dir int, name string) bool {
	var st unix.Stat_t
	err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFREG
}

// fill sets the mode and owner of a new file, then writes its contents.
func fill(f *os.File, fd int, data []byte, o Options) error {
	if err := unix.Fchmod(fd, uint32(o.Mode.Perm())); err != nil {
		return err
	}
	if o.Give != nil {
		if err := o.Give(fd); err != nil {
			return err
		}
	}
	_, err := f.Write(data)
	return err
}
