package guest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// The management console of a User-Mode Linux kernel is a datagram socket (arch/um/drivers/mconsole.h): a request is a
// magic number, a version, a length and 512 bytes of text, a reply an error, whether more follows, a length and text. All
// numbers are in the host's byte order, and of four bytes.
const (
	mconsoleMagic   = 0xcafebabe
	mconsoleVersion = 2
	mconsoleText    = 512
)

// mconsoleRequest is the datagram of a command.
func mconsoleRequest(command string) []byte {
	b := make([]byte, 12+mconsoleText)
	for i, n := range []uint32{mconsoleMagic, mconsoleVersion, uint32(len(command))} {
		binary.NativeEndian.PutUint32(b[4*i:], n)
	}
	copy(b[12:], command)
	return b
}

// Halt asks the guest to power off, as Ctrl-Alt-Del would. It does not wait for the end.
func (m Machine) Halt() error { return m.console("cad") }

func (m Machine) console(command string) error {
	own := filepath.Join(m.Dir, m.Name+".reply")
	if err := os.Remove(own); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("asking the guest %s to %s: %w", m.Name, command, err)
	}
	conn, err := net.DialUnix("unixgram", &net.UnixAddr{Name: own, Net: "unixgram"},
		&net.UnixAddr{Name: filepath.Join(m.Dir, m.Name, "mconsole"), Net: "unixgram"})
	if err != nil {
		return fmt.Errorf("asking the guest %s to %s: %w", m.Name, command, err)
	}
	defer os.Remove(own)
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write(mconsoleRequest(command)); err != nil {
		return fmt.Errorf("asking the guest %s to %s: %w", m.Name, command, err)
	}
	reply := make([]byte, 12+4<<10)
	n, err := conn.Read(reply)
	if err == nil && n < 12 {
		err = fmt.Errorf("a reply of %d bytes", n)
	}
	if err == nil && binary.NativeEndian.Uint32(reply) != 0 {
		err = errors.New(strings.TrimSpace(string(reply[12:n])))
	}
	if err != nil {
		return fmt.Errorf("asking the guest %s to %s: %w", m.Name, command, err)
	}
	return nil
}
