package agent

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// capture is the wrapper's end of the pipe that a run writes its output to.
type capture struct {
	pipe *os.File
	fd   int // of pipe
	most int
}

// captureEnd is what was kept of a run's output.
type captureEnd struct {
	run    *run
	output []byte
}

// newCapture makes the pipe; the other end is for the launcher.
func newCapture(most int) (*capture, *os.File, error) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, err
	}
	output := os.NewFile(uintptr(pipe[1]), "output")
	if err := unix.SetNonblock(pipe[0], true); err != nil { // for the deadline
		return nil, nil, errors.Join(err, output.Close(), unix.Close(pipe[0]))
	}
	return &capture{pipe: os.NewFile(uintptr(pipe[0]), "output"), fd: pipe[0], most: most}, output, nil
}

// end is called when the main process has ended. Later output of its children is lost.
func (c *capture) end() {
	if c != nil {
		_ = c.pipe.SetReadDeadline(time.Now())
	}
}

// abandon closes a pipe that nobody writes to.
func (c *capture) abandon() {
	if c != nil {
		c.pipe.Close()
	}
}

// read reads to the end of the pipe or of the main process, whichever comes first, and
// keeps the beginning. It never stops reading earlier, which would block the program.
func (c *capture) read() []byte {
	defer c.pipe.Close()
	var kept []byte
	buf := make([]byte, 4096)
	for {
		n, err := c.pipe.Read(buf)
		kept = append(kept, buf[:min(n, c.most-len(kept))]...)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil {
			return kept
		}
	}
	// All that the main process wrote is in the pipe.
	for len(kept) < c.most {
		n, err := unix.Read(c.fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n <= 0 {
			break
		}
		kept = append(kept, buf[:min(n, c.most-len(kept))]...)
	}
	return kept
}

// captureEnded stores a run's output.
func (a *agent) captureEnded(e *captureEnd) {
	e.run.output, e.run.captured = e.output, true
	if e.run == a.run {
		a.advance()
	}
}

// programFile puts a program that came with a request into a file that nobody can change.
func programFile(program []byte) (*os.File, error) {
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate("program", flags|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // Linux before 6.3
		fd, err = unix.MemfdCreate("program", flags)
	}
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "program")
	if _, err = f.Write(program); err == nil {
		const seals = unix.F_SEAL_WRITE | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
