package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"podstarter/internal/atomicfile"
	"podstarter/payload"
)

// control is the wrapper's control directory. All access goes through the file
// descriptor opened at the start: the payload may rename directories of its
// image above the mount point.
type control struct {
	path string
	dir  *os.File
	boot string
	sock *net.UnixListener
	// its group may enter; nil: only this user
	pilot *pilot
}

// openControl makes the directory if it is missing, and lets only this user and the pilot
// in. An emptyDir volume comes with mode 0777, so it closes the directory above too.
func openControl(path, boot string, peer *pilot) (*control, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("control directory: %w", err)
	}
	parent := filepath.Dir(path)
	//nolint:forbidigo // before any payload of this container runs
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return nil, fmt.Errorf("make control directory %s: %w", path, err)
	}
	if err := closeToOthers(parent, peer); err != nil {
		return nil, err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make control directory %s: %w", path, err)
	}
	dir, err := openDirectory(path)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return nil, fmt.Errorf("control directory %s: %w", path, err)
	}
	if int(st.Uid) != os.Geteuid() {
		return nil, fmt.Errorf("control directory %s belongs to user %d, not to this user (%d); remove it or correct its owner", path, st.Uid, os.Geteuid())
	}
	if err := peer.admit(int(dir.Fd()), 0o700); err != nil {
		return nil, fmt.Errorf("close control directory %s to others: %w", path, err)
	}
	return &control{path: path, dir: dir, boot: boot, pilot: peer}, nil
}

func openDirectory(path string) (*os.File, error) {
	//nolint:forbidigo // no link is followed, and the owner is checked
	f, err := os.OpenFile(path, unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_RDONLY, 0)
	if err != nil {
		return nil, fmt.Errorf("open directory %s: %w", path, err)
	}
	return f, nil
}

// closeToOthers makes sure that nobody else can rename or remove what is in a
// directory.
func closeToOthers(path string, peer *pilot) error {
	dir, err := openDirectory(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return fmt.Errorf("directory %s: %w", path, err)
	}
	mine := int(st.Uid) == os.Geteuid()
	if (st.Mode&0o022 == 0 || st.Mode&unix.S_ISVTX != 0) && (peer == nil || !mine) {
		return nil
	}
	if !mine {
		return fmt.Errorf("directory %s above the control directory is writable by others and belongs to user %d, so it is not safe; give it to user %d or set its sticky bit",
			path, st.Uid, os.Geteuid())
	}
	if err := peer.admit(int(dir.Fd()), 0o700); err != nil {
		return fmt.Errorf("close directory %s to others: %w", path, err)
	}
	return nil
}

func (c *control) temporarySocket() string { return "." + payload.SocketName + "." + c.boot }

// listen binds the socket under a temporary name.
func (c *control) listen() error {
	c.removeStrays()
	c.removeMatching("." + payload.SocketName + ".")
	// Through /proc/self/fd, since the path of a socket is limited to 107
	// bytes (unix(7)).
	name := filepath.Join(procfs, "self/fd", strconv.Itoa(int(c.dir.Fd())), c.temporarySocket())
	sock, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		return fmt.Errorf("listen in %s: %w", c.path, err)
	}
	sock.SetUnlinkOnClose(false) // it will have another name
	if err := c.pilot.admitAt(int(c.dir.Fd()), c.temporarySocket(), 0o600); err != nil {
		return fmt.Errorf("let the pilot connect to the socket in %s: %w", c.path, err)
	}
	c.sock = sock
	return nil
}

// announceAgain touches the socket (inotify, IN_ATTRIB): starters that were refused learn
// from it that the wrapper is free.
func (c *control) announceAgain() {
	_ = unix.UtimesNanoAt(int(c.dir.Fd()), payload.SocketName, nil, unix.AT_SYMLINK_NOFOLLOW)
}

// withdraw removes the socket.
func (c *control) withdraw() {
	_ = unix.Unlinkat(int(c.dir.Fd()), payload.SocketName, 0)
}

// writeExit writes an exit record under a temporary name and renames it, so that readers
// see the whole record or none, even if either process dies.
//
// There is no fsync. It would help only if the machine crashes, and then nobody is left to
// read the record; and the end of the job would wait for the disk: 0.17 s after a job that
// had written 3 GB.
func (c *control) writeExit(e payload.Exit) error {
	data, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write exit record: %w", err)
	}
	name := payload.ExitRecordName(e.Activation)
	err = atomicfile.ReplaceAt(int(c.dir.Fd()), name, append(data, '\n'), atomicfile.Options{
		Mode:      0o600,
		Give:      func(fd int) error { return c.pilot.admit(fd, 0o600) },
		Temporary: "." + name + "." + c.boot,
	})
	if err != nil {
		return fmt.Errorf("write exit record %s in %s: %w", name, c.path, err)
	}
	return nil
}

// removeExits removes the records of earlier runs.
func (c *control) removeExits() {
	c.removeMatching("exit.")
	c.removeMatching(".exit.")
}

func (c *control) removeMatching(prefix string) {
	if _, err := c.dir.Seek(0, 0); err != nil {
		return
	}
	names, err := c.dir.Readdirnames(-1)
	if err != nil {
		return
	}
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			_ = unix.Unlinkat(int(c.dir.Fd()), name, 0)
		}
	}
}
