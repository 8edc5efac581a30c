package payload

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Names of the standard files in [Spec.Passed].
const (
	Stdin  = "stdin"
	Stdout = "stdout"
	Stderr = "stderr"
)

// MaxPassed is how many open files can come with a start request.
const MaxPassed = 3

// validatePassed checks that each standard file is passed at most once, and has no path
// too.
func (s *Spec) validatePassed() error {
	for i, name := range s.Passed {
		var path string
		switch name {
		case Stdin:
			path = s.Stdin
		case Stdout:
			path = s.Stdout
		case Stderr:
			path = s.Stderr
		default:
			return fmt.Errorf("%.40q is not a standard file", name)
		}
		if slices.Contains(s.Passed[:i], name) {
			return fmt.Errorf("%s is passed twice", name)
		}
		if path != "" {
			return fmt.Errorf("%s is passed as an open file, but also names a file to open, %.200q", name, path)
		}
	}
	return nil
}

// SendFiles writes all of data, and open files along with its first byte
// (unix(7), SCM_RIGHTS).
func SendFiles(conn *net.UnixConn, data []byte, files []*os.File) error {
	if len(files) == 0 {
		_, err := conn.Write(data)
		return err
	}
	fds := make([]int, len(files))
	for i, f := range files {
		fds[i] = int(f.Fd())
	}
	n, _, err := conn.WriteMsgUnix(data, unix.UnixRights(fds...), nil)
	if err == nil && n < len(data) {
		_, err = conn.Write(data[n:])
	}
	return err
}

// TakeFiles takes the open files out of the control data of a received message. At most
// limit are kept, the others closed.
func TakeFiles(control []byte, limit int, name string) ([]*os.File, error) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil, fmt.Errorf("files that came with a message: %w", err)
	}
	var taken []*os.File
	var problems error
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			problems = errors.Join(problems, err)
			continue
		}
		for _, fd := range fds {
			if len(taken) == limit {
				_ = unix.Close(fd)
				continue
			}
			taken = append(taken, os.NewFile(uintptr(fd), name))
		}
	}
	return taken, problems
}

// Pipe makes a pipe between the starter and a payload of this user. The starter uses the
// keep end: it supports deadlines, and what the payload does with its own end cannot block
// it. The give end is for [Client.Start]; with output it is the end to write to.
//
// If permitted, the pipe is made to belong to the payload's user, so that the payload can
// open /dev/stdout as it can with a file.
func Pipe(output bool, uid, gid int) (keep, give *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, fmt.Errorf("make a pipe for a standard file: %w", err)
	}
	_ = unix.Fchown(fds[0], uid, gid) // both ends have one inode
	kept, given := fds[0], fds[1]
	if !output {
		kept, given = given, kept
	}
	if err := unix.SetNonblock(kept, true); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("make a pipe for a standard file: %w", err), unix.Close(kept), unix.Close(given))
	}
	return os.NewFile(uintptr(kept), "pipe"), os.NewFile(uintptr(given), "pipe"), nil
}
