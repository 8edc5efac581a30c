package sshtojob

import (
	"encoding/binary"
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/payload"
)

// pollable returns a file of an open terminal whose reads can be interrupted,
// and closes the original.
func pollable(f *os.File) (*os.File, error) {
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	// Only the master side of a terminal has a terminal number.
	if _, err := unix.IoctlGetInt(fd, unix.TIOCGPTN); err != nil {
		return nil, errors.Join(errors.New("the descriptor is not a terminal"), err, unix.Close(fd))
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, errors.Join(err, unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "terminal"), nil
}

// control does something with the descriptor. File.Fd would make the file's
// reads block for good.
func control(f *os.File, do func(fd int)) {
	if raw, err := f.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { do(int(fd)) })
	}
}

func setSize(f *os.File, size payload.Terminal) {
	control(f, func(fd int) {
		_ = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: size.Rows, Col: size.Columns})
	})
}

// maxDrain limits what is read from a terminal after its process has ended, in
// bytes: more than the kernel holds, and an end if others still write to it.
const maxDrain = 1 << 20

// drain sends what the process wrote before it ended. It does not wait for other
// processes that have the terminal open.
func (r *room) drain(master *os.File, copied <-chan struct{}) {
	if err := master.SetReadDeadline(time.Now()); err != nil {
		return
	}
	<-copied
	if err := master.SetReadDeadline(time.Time{}); err != nil {
		return
	}
	raw, err := master.SyscallConn()
	if err != nil {
		return
	}
	buf := make([]byte, 32<<10)
	_ = raw.Read(func(fd uintptr) bool {
		for total := 0; total < maxDrain; {
			n, err := unix.Read(int(fd), buf)
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			if err != nil || n <= 0 {
				break
			}
			total += n
			if _, err := r.channel.Write(buf[:n]); err != nil {
				break
			}
		}
		return true
	})
}

// Opcodes of terminal modes (RFC 4254, section 8).
const (
	modeEnd       = 0
	modeFirstLong = 160 // from here on the size of arguments is unknown
)

var modeCharacters = map[byte]int{
	1: unix.VINTR, 2: unix.VQUIT, 3: unix.VERASE, 4: unix.VKILL, 5: unix.VEOF, 6: unix.VEOL, 7: unix.VEOL2,
	8: unix.VSTART, 9: unix.VSTOP, 10: unix.VSUSP, 12: unix.VREPRINT, 13: unix.VWERASE, 14: unix.VLNEXT, 18: unix.VDISCARD,
}

var modeInput = map[byte]uint32{
	30: unix.IGNPAR, 31: unix.PARMRK, 32: unix.INPCK, 33: unix.ISTRIP, 34: unix.INLCR, 35: unix.IGNCR, 36: unix.ICRNL,
	38: unix.IXON, 39: unix.IXANY, 40: unix.IXOFF, 41: unix.IMAXBEL, 42: unix.IUTF8,
}

var modeLocal = map[byte]uint32{
	50: unix.ISIG, 51: unix.ICANON, 53: unix.ECHO, 54: unix.ECHOE, 55: unix.ECHOK, 56: unix.ECHONL, 57: unix.NOFLSH,
	58: unix.TOSTOP, 59: unix.IEXTEN, 60: unix.ECHOCTL, 61: unix.ECHOKE, 62: unix.PENDIN,
}

var modeOutput = map[byte]uint32{70: unix.OPOST, 72: unix.ONLCR, 73: unix.OCRNL, 74: unix.ONOCR, 75: unix.ONLRET}

// withModes changes the settings of a terminal to the client's.
func withModes(t unix.Termios, modes []byte) unix.Termios {
	for len(modes) >= 5 && modes[0] != modeEnd && modes[0] < modeFirstLong {
		code, value := modes[0], binary.BigEndian.Uint32(modes[1:])
		modes = modes[5:]
		if c, ok := modeCharacters[code]; ok {
			if value == 255 {
				value = 0 // off (_POSIX_VDISABLE)
			}
			t.Cc[c] = byte(value)
		}
		for _, set := range []struct {
			names map[byte]uint32
			flags *uint32
		}{{modeInput, &t.Iflag}, {modeLocal, &t.Lflag}, {modeOutput, &t.Oflag}} {
			bit, ok := set.names[code]
			switch {
			case ok && value != 0:
				*set.flags |= bit
			case ok:
				*set.flags &^= bit
			}
		}
	}
	return t
}

// applyModes applies the client's modes to a terminal.
func applyModes(f *os.File, modes []byte) {
	control(f, func(fd int) {
		now, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err != nil {
			return
		}
		then := withModes(*now, modes)
		_ = unix.IoctlSetTermios(fd, unix.TCSETS, &then)
	})
}
