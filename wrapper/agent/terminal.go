package agent

import (
	"fmt"

	"golang.org/x/sys/unix"

	"podstarter/payload"
)

// openTerminal makes a terminal in the container, uses it as this session's controlling
// terminal and standard files, and sends the master side to the requester. This process
// already is the payload's user, so the terminal belongs to the payload (Linux,
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
	// The launcher was started in a new session.
	if err := unix.IoctlSetInt(slave, unix.TIOCSCTTY, 0); err != nil {
		return fmt.Errorf("make the terminal the controlling one: %w", err)
	}
	for _, fd := range []int{unix.Stdin, unix.Stdout, unix.Stderr} {
		if err := unix.Dup3(slave, fd, 0); err != nil {
			return fmt.Errorf("use the terminal as standard files: %w", err)
		}
	}
	if err := unix.Sendmsg(passedFD, []byte{0}, unix.UnixRights(master), nil, unix.MSG_NOSIGNAL); err != nil {
		return fmt.Errorf("pass the terminal on: %w", err)
	}
	return nil
}

// slaveOf opens the other side of a terminal without its name: another instance may be
// mounted at /dev/pts (ioctl_tty(2), TIOCGPTPEER).
func slaveOf(master int) (int, error) {
	flags := uintptr(unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC)
	fd, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, flags)
	if errno != 0 {
		return -1, fmt.Errorf("open the terminal: %w", errno)
	}
	return int(fd), nil
}
