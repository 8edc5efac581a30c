package agent

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ExitNoProcesses is the exit code of a wrapper that cannot have processes of its own here: EX_OSERR of sysexits(3).
const ExitNoProcesses = 71

// errNoProcesses says that the kernel does not let this process mount the /proc of its PID namespace.
var errNoProcesses = errors.New("the processes of this PID namespace cannot be shown")

// ownProc mounts the /proc of this process's PID namespace in place of the machine's (filesystem_remap.cpp:PerformMappings), and returns that of the
// machine, by which a process learns its number there. What is mounted below /proc stays: it hides files from everybody, or has other content for this
// machine.
func ownProc() (machine *os.File, err error) {
	if pid := os.Getpid(); pid != 1 {
		return nil, fmt.Errorf("%w: this is process %d, and not the first one of a PID namespace", errNoProcesses, pid)
	}
	//nolint:forbidigo // before any payload of this wrapper runs
	if machine, err = os.OpenFile(procfs, unix.O_PATH|unix.O_DIRECTORY, 0); err != nil {
		return nil, fmt.Errorf("%w: %w", errNoProcesses, err)
	}
	if err = mountProc(); err != nil {
		machine.Close()
		return nil, fmt.Errorf("%w: %w", errNoProcesses, err)
	}
	return machine, nil
}

func mountProc() error {
	covers, err := openCovers()
	defer func() {
		for _, c := range covers {
			_ = unix.Close(c.fd)
		}
	}()
	if err != nil {
		return err
	}
	if err := unix.Mount("proc", procfs, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount %s: %w", procfs, err)
	}
	for _, c := range covers {
		err := unix.Mount(fdPath(c.fd), c.at, "", unix.MS_BIND, "")
		if err != nil && !errors.Is(err, unix.ENOENT) { // it was in the directory of a process
			return fmt.Errorf("mount what covers %s there again: %w", c.at, err)
		}
	}
	return nil
}

// cover is something that is mounted below /proc.
type cover struct {
	at string
	fd int
}

// maxMountinfo bounds the list of mounts, in bytes. A machine has a few hundred, of some hundred bytes.
const maxMountinfo = 4 << 20

// openCovers opens all that is mounted below /proc, what is above something else first.
func openCovers() ([]cover, error) {
	f, err := os.Open(procfs + "/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var covers []cover
	places, err := coveredPlaces(f)
	for _, at := range places {
		fd, err := unix.Open(at, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) {
			continue // under another mount
		}
		if err != nil {
			return covers, fmt.Errorf("open %s: %w", at, err)
		}
		covers = append(covers, cover{at, fd})
	}
	return covers, err
}

// coveredPlaces are the mount points below /proc in a list as /proc/self/mountinfo has it (proc(5)), each once.
func coveredPlaces(mountinfo io.Reader) ([]string, error) {
	var places []string
	seen := make(map[string]bool)
	limited := &io.LimitedReader{R: mountinfo, N: maxMountinfo}
	lines := bufio.NewScanner(limited)
	for lines.Scan() {
		const mountPoint = 4
		fields := strings.Fields(lines.Text())
		if len(fields) <= mountPoint {
			continue
		}
		at := unescapeMount(fields[mountPoint])
		if strings.HasPrefix(at, procfs+"/") && !seen[at] {
			seen[at] = true
			places = append(places, at)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the list of mounts: %w", err)
	}
	if limited.N <= 0 {
		return nil, fmt.Errorf("the list of mounts has more than %d bytes", maxMountinfo)
	}
	return places, nil
}

// unescapeMount undoes the octal numbers by which the kernel writes blanks and backslashes (fs/proc_namespace.c:mangle).
func unescapeMount(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		const digits = 3
		if text[i] == '\\' && i+digits < len(text) {
			if c, err := strconv.ParseUint(text[i+1:i+1+digits], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += digits
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// numberIn is this process's number where a /proc is from, which is open as fd; 0 if that is not known.
func numberIn(fd int) int {
	var text [24]byte
	n, err := unix.Readlinkat(fd, "self", text[:])
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(string(text[:n]))
	if err != nil {
		return 0
	}
	return pid
}
