package agent

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"podstarter/payload"
)

// maxStrays bounds how many directories are removed at once. A path has at most 2,048
// names, and each container leaves one path.
const maxStrays = 1 << 14

// removeStrays removes directories from the control directory, where the wrapper makes
// none. A container runtime makes them as root of the node if an image's symbolic link
// redirects a mount to here. One in the place of the socket would keep every later wrapper
// from announcing itself.
//
// It never enters a mount: the kernel refuses to move or remove one (EBUSY), and only
// directories that could be moved are opened.
func (c *control) removeStrays() {
	at := int(c.dir.Fd())
	moved := 0
	// aside moves a directory up here under a new name, which flattens the tree.
	aside := func(from int, name string) bool {
		moved++
		return unix.Renameat(from, name, at, ".stray."+c.boot+"."+strconv.Itoa(moved)) == nil
	}
	for changed := true; changed && moved < maxStrays; {
		changed = false
		for _, name := range namesIn(c.dir) {
			var st unix.Stat_t
			if unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
				continue
			}
			if unix.Unlinkat(at, name, unix.AT_REMOVEDIR) == nil {
				continue
			}
			if !aside(at, name) {
				continue // a mount point
			}
			changed = true
			c.flatten(".stray."+c.boot+"."+strconv.Itoa(moved), aside)
		}
	}
}

// flatten empties a directory: it moves out what it cannot remove.
func (c *control) flatten(name string, aside func(from int, name string) bool) {
	fd, err := unix.Openat(int(c.dir.Fd()), name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	dir := os.NewFile(uintptr(fd), name)
	defer dir.Close()
	for _, child := range namesIn(dir) {
		if unix.Unlinkat(fd, child, 0) != nil && unix.Unlinkat(fd, child, unix.AT_REMOVEDIR) != nil {
			aside(fd, child)
		}
	}
	_ = unix.Unlinkat(int(c.dir.Fd()), name, unix.AT_REMOVEDIR)
}

// namesIn gives the names in a directory, maxStrays at most.
func namesIn(dir *os.File) []string {
	if _, err := dir.Seek(0, 0); err != nil {
		return nil
	}
	names, _ := dir.Readdirnames(maxStrays)
	return names
}

// announce gives the socket its name. When the name appears, the wrapper is ready (inotify,
// IN_MOVED_TO).
func (c *control) announce() error {
	const attempts = 3 // another container may be created meanwhile
	fd := int(c.dir.Fd())
	var err error
	for range attempts {
		err = unix.Renameat(fd, c.temporarySocket(), fd, payload.SocketName)
		if !errors.Is(err, unix.EISDIR) {
			break
		}
		c.removeStrays()
	}
	if err != nil {
		return fmt.Errorf("announce the socket in %s: %w", c.path, err)
	}
	return nil
}
