package agent

import (
	"fmt"

	"golang.org/x/sys/unix"

	"podstarter/payload"
)

// openTerminal makes a terminal in the container, the controlling one of this
// session and its standard files, and sends the master side to whoever asked.
// This is the payload's user by now, and so the terminal belongs to it (Linux,
// fs/devpts/inode.c:devpts_pty_new).
func openTerminal(size *payload.Terminal) error {
	master, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open /dev/ptmx: %w", err)
	}
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return fmt.Errorf("unlock the terminal: %w", err)
	}
	slave, err := slaveOf(master)
	if err != nil {
		return err
	}
	window := unix.Winsize{Row: size.Rows, Col: size.Columns}
	if err := unix.IoctlSetWinsize(slave, unix.TIOCSWINSZ, &window); err != nil {
		return fmt.Errorf("set the size of the terminal: %w", err)
	}
	// The launcher began a session when it was started.
	if err := unix.IoctlSetInt(slave, unix.TIOCSCTTY, 0); err != nil {
		return fmt.Errorf("take the terminal: %w", err)
	}
	for _, fd := range []int{unix.Stdin, unix.Stdout, unix.Stderr} {
		if err := unix.Dup3(slave, fd, 0); err != nil {
			return fmt.Errorf("use the terminal: %w", err)
		}
	}
	if err := unix.Sendmsg(passedFD, []byte{0}, unix.UnixRights(master), nil, unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("pass the terminal on: %w", err)
	}
	return nil
}

// slaveOf opens the other side of a terminal, not by its name: what is mounted
// at /dev/pts may be another instance (ioctl_tty(2), TIOCGPTPEER).
func slaveOf(master int) (int, error) {
	flags := uintptr(unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC)
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, flags)
	if errno != 0 {
		return -1, fmt.Errorf("open the terminal: %w", errno)
	}
	return int(fd), nil
}
