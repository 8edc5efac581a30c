package imagetree

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// finish does what Apptainer does for an image each time that it starts a program in it.
func (o Order) finish(root int) error {
	err := errors.Join(makeTemporary(root, ".", "tmp"), makeTemporary(root, "var", "tmp"))
	if err == nil && o.Account != (Account{}) {
		err = o.Account.add(root, o.Again)
	}
	return err
}

// everybodys is the mode of a directory for temporary files.
const everybodys = 0o1777

// makeTemporary makes a directory for everybody's temporary files, or gives that mode to the image's
// own. What is a link, or mounted, stays as it is.
func makeTemporary(root int, parent, name string) error {
	dir, err := unix.Openat2(root, parent, &beneath)
	if err != nil {
		return nil // no parent, a link or a mount
	}
	defer func() { _ = unix.Close(dir) }()
	if err := unix.Mkdirat(dir, name, 0o700); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("make the directory %s/%s: %w", parent, name, err)
	}
	how := beneath
	how.Flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC
	own, err := unix.Openat2(dir, name, &how)
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EXDEV), errors.Is(err, unix.EACCES):
		return nil
	case err != nil:
		return fmt.Errorf("open the directory %s/%s: %w", parent, name, err)
	}
	defer func() { _ = unix.Close(own) }()
	if err := unix.Fchmod(own, everybodys); err != nil && !errors.Is(err, unix.EPERM) {
		return fmt.Errorf("give the directory %s/%s the mode %o: %w", parent, name, everybodys, err)
	}
	return nil
}
