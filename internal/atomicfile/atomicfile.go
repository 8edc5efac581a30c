// Package atomicfile replaces files in one step: readers that open a file by its name,
// without a lock, find either the old contents or the new ones, complete.
//
// It works inside an open directory and takes names without a slash, so no symbolic link
// can redirect a write. A link with that name is replaced, not followed.
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

// Options describe the new file.
type Options struct {
	// Mode is the file's permission bits, whatever the umask.
	Mode fs.FileMode

	// Give is called with the new file while it is empty, to change its owner; nil leaves
	// it to the calling thread's user. Replace keeps the descriptor.
	Give func(fd int) error

	// Temporary is the name of the file until it is in place, for callers that write one
	// at a time: a crash leaves at most one such file, which the next call removes.
	// Anything else with that name is an error. Empty means a random name with a leading
	// dot, which any number of callers may use at once.
	Temporary string
}

// Replace puts a file with this name and contents into a directory. After an error the
// old file is unchanged, and nothing else is left. The contents are not synced to the
// disk: a crash of the machine may lose them, a crash of this process does not.
func Replace(dir *os.Root, name string, data []byte, o Options) error {
	at, err := dir.Open(".")
	if err != nil {
		return &fs.PathError{Op: "replace", Path: name, Err: err}
	}
	defer at.Close()
	return ReplaceAt(int(at.Fd()), name, data, o)
}

// ReplaceAt is Replace in the directory of a descriptor, which may have been opened with
// O_PATH.
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
		_ = unix.Unlinkat(dir, temporary, 0) // of a caller that died; if this fails, the next step does, too
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
