package payload

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// CgroupFile is the file that the wrapper opens and passes along with its Hello
// (unix(7), SCM_RIGHTS). The kernel writes what is read from it for who reads it:
// the wrapper itself may find its own control group to be "/" (cgroup_namespaces(7)), the
// starter reads from the same file where in the hierarchy it is, however little
// the two containers share. Nothing of it is the wrapper's word.
const CgroupFile = "/proc/self/cgroup"

// maxCgroups bounds what is read of it: a dozen hierarchies with a path each.
const maxCgroups = 64 << 10

// greeting reads from a connection and keeps the first file that comes with the
// bytes. Any other is closed.
type greeting struct {
	conn   *net.UnixConn
	file   *os.File // nil if none came
	passed bool     // none is waited for
}

// Read implements io.Reader.
func (g *greeting) Read(p []byte) (int, error) {
	// For more files than a peer has a reason to send; the kernel closes the rest.
	control := make([]byte, unix.CmsgSpace(4*8))
	n, used, _, _, err := g.conn.ReadMsgUnix(p, control)
	g.take(control[:max(used, 0)])
	if n <= 0 && err == nil && len(p) > 0 {
		err = io.EOF // ReadMsgUnix does not say so
	}
	return max(n, 0), err // -1 with an error, unlike Read
}

func (g *greeting) take(control []byte) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return
	}
	for i := range messages {
		files, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue
		}
		for _, fd := range files {
			f := os.NewFile(uintptr(fd), CgroupFile)
			if g.file != nil || g.passed {
				f.Close()
				continue
			}
			g.file = f
		}
	}
}

var errNotProc = errors.New("it is none of /proc")

// over says that no file is waited for any more.
func (g *greeting) over() {
	if g.file != nil {
		g.file.Close()
	}
	g.file, g.passed = nil, true
}

// cgroups reads the file; empty if there is none, or it is of no use.
func (g *greeting) cgroups(log *slog.Logger) string {
	if g.file == nil {
		return ""
	}
	text, err := readProc(g.file)
	if err != nil {
		log.Debug("the file that the wrapper sent does not tell its control group", "error", err)
	}
	return text
}

// readProc reads a file of /proc. A read of anything else might not end.
func readProc(f *os.File) (string, error) {
	var at unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &at); err != nil {
		return "", err
	}
	var is unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &is); err != nil {
		return "", err
	}
	if at.Type != unix.PROC_SUPER_MAGIC || is.Mode&unix.S_IFMT != unix.S_IFREG {
		return "", errNotProc
	}
	data, err := io.ReadAll(io.LimitReader(f, maxCgroups))
	return string(data), err
}
