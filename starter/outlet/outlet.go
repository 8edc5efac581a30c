// Package outlet writes lines to the standard output of the pilot container, for programs that
// have none of their own because condor_master started them.
package outlet

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"podstarter/k8sexec/privatedir"
)

// File is the FIFO in the state directory that leads to the standard output of the
// pilot container; deploy/image/entrypoint makes it.
const File = "stdout"

// Outlet writes lines to the FIFO without ever waiting. It belongs to one goroutine.
type Outlet struct {
	Dir  string // the state directory
	fd   int    // a plain descriptor, since the runtime's poller would wait; 0 while it is not open
	Lost int64  // lines so far
}

// Open opens the FIFO, unless it is open: a program does so before it gives up the rights
// that this needs.
func (o *Outlet) Open() error {
	if o.fd != 0 {
		return nil
	}
	var err error
	o.fd, err = openFIFO(o.Dir)
	return err
}

// Write implements io.Writer for one line, which the FIFO takes whole or not at all if it is
// not longer than 4096 bytes (pipe(7), PIPE_BUF). It never fails: what is lost is counted.
func (o *Outlet) Write(line []byte) (int, error) {
	if err := o.write(line); err != nil {
		o.Lost++
	}
	return len(line), nil
}

func (o *Outlet) write(line []byte) error {
	if err := o.Open(); err != nil {
		return err
	}
	for {
		_, err := unix.Write(o.fd, line)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil && !errors.Is(err, unix.EAGAIN):
			o.Close() // its reader is gone; the next line finds out whether there is another
		}
		return err
	}
}

// Close closes the FIFO. The next line opens it again.
func (o *Outlet) Close() {
	if o.fd != 0 {
		_ = unix.Close(o.fd)
		o.fd = 0
	}
}

// openFIFO opens the FIFO if somebody reads it.
func openFIFO(stateDir string) (int, error) {
	dir, err := privatedir.Open(stateDir)
	if err != nil {
		return 0, err
	}
	defer dir.Close()
	at, err := dir.Open(".")
	if err != nil {
		return 0, err
	}
	defer at.Close()
	fd, err := unix.Openat(int(at.Fd()), File, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("open the FIFO %s in %s: %w", File, stateDir, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
		_ = unix.Close(fd)
		return 0, fmt.Errorf("%s in %s is no FIFO", File, stateDir)
	}
	return fd, nil
}
