package payload

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"podstarter/payload/memcg"
)

// CgroupFile is the file that the wrapper opens and passes along with its Hello (unix(7),
// SCM_RIGHTS). The kernel writes its content for each reader: the wrapper may see its own
// control group as "/" (cgroup_namespaces(7)), while the starter reads its place in the
// hierarchy from the same open file, however little the two containers share. The wrapper
// cannot forge it.
const CgroupFile = "/proc/self/cgroup"

// maxCgroups bounds its size in bytes: a dozen hierarchies with a path each.
const maxCgroups = 64 << 10

// greeting reads from a connection. It keeps the first file that comes with the Hello, and
// after that those of the memory control group. Any other is closed. Only the goroutine
// that reads uses it.
type greeting struct {
	conn  *net.UnixConn
	file  *os.File   // nil if none came
	later []*os.File // that came after the Hello, and that nobody has taken
	stage greetingStage
}

type greetingStage int

const (
	inHello    greetingStage = iota // one file is expected
	afterHello                      // those of the memory control group are
	ended                           // none is
)

// Read implements io.Reader.
func (g *greeting) Read(p []byte) (int, error) {
	// Room for more files than a peer should send; the kernel closes the rest.
	control := make([]byte, unix.CmsgSpace(4*memcg.MaxFiles))
	n, used, _, _, err := g.conn.ReadMsgUnix(p, control)
	g.take(control[:max(used, 0)])
	if n <= 0 && err == nil && len(p) > 0 {
		err = io.EOF // ReadMsgUnix returns 0 and no error
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
			switch {
			case g.stage == inHello && g.file == nil:
				g.file = f
			case g.stage == afterHello && len(g.later) < memcg.MaxFiles:
				g.later = append(g.later, f)
			default:
				f.Close()
			}
		}
	}
}

var errNotProc = errors.New("it is not a file of /proc")

// greeted ends the wait for the file of the Hello.
func (g *greeting) greeted() {
	if g.file != nil {
		g.file.Close()
	}
	g.file, g.stage = nil, afterHello
}

// rest gives the files that came after the Hello to the caller. No others are expected.
func (g *greeting) rest() []*os.File {
	files := g.later
	g.later, g.stage = nil, ended
	return files
}

// over ends the wait for files.
func (g *greeting) over() {
	g.greeted()
	for _, f := range g.rest() {
		f.Close()
	}
}

// cgroups reads the file; empty if there is none or it is not usable.
func (g *greeting) cgroups(log *slog.Logger) string {
	if g.file == nil {
		return ""
	}
	text, err := readProc(g.file)
	if err != nil {
		log.Debug("cannot read the wrapper's control group from the file that it sent", "error", err)
	}
	return text
}

// readProc reads a file of /proc and refuses any other, whose read might not end.
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
