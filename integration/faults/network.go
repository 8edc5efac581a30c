package faults

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// connection is one TCP connection of this machine, as one of its ends sees it.
type connection struct {
	local, remote         [4]byte
	localPort, remotePort uint16
}

// established lists the connections of a table in the form of /proc/net/tcp
// (proc_pid_net(5)) that lead to a port.
func established(table []byte, port uint16) ([]connection, error) {
	const state = "01" // TCP_ESTABLISHED
	var found []connection
	lines := bufio.NewScanner(bytes.NewReader(table))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 4 || fields[3] != state {
			continue // the heading has words in the place of numbers
		}
		var c connection
		var err error
		if c.local, c.localPort, err = endpoint(fields[1]); err != nil {
			return nil, err
		}
		if c.remote, c.remotePort, err = endpoint(fields[2]); err != nil {
			return nil, err
		}
		if c.remotePort == port {
			found = append(found, c)
		}
	}
	return found, lines.Err()
}

// endpoint reads 0100007F:2580, an address as the machine stores it and a port.
func endpoint(text string) (address [4]byte, port uint16, err error) {
	host, number, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	if err != nil || len(raw) != 4 {
		return address, 0, fmt.Errorf("%q is no address of a table of connections", text)
	}
	n, err := strconv.ParseUint(number, 16, 16)
	if err != nil {
		return address, 0, fmt.Errorf("%q is no address of a table of connections", text)
	}
	// What was printed as a number of the machine goes back into its bytes.
	binary.NativeEndian.PutUint32(address[:], binary.BigEndian.Uint32(raw))
	return address, uint16(n), nil
}

// breakConnections breaks every established connection from this machine to the
// port, as a network does whose state is lost: either end finds out at once, and
// neither has closed it (sock_diag(7): SOCK_DESTROY). The end that called is the one to
// name: for the other the kernel might take the socket that listens.
func breakConnections(port uint16) (int, error) {
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return 0, fmt.Errorf("listing connections: %w", err)
	}
	all, err := established(table, port)
	if err != nil {
		return 0, err
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return 0, fmt.Errorf("asking the kernel to break connections: %w", err)
	}
	defer unix.Close(fd)
	broken := 0
	for _, c := range all {
		err := destroy(fd, c)
		switch {
		case errors.Is(err, unix.ENOENT): // the other end went with it
		case err != nil:
			return broken, fmt.Errorf("asking the kernel to break the connection from port %d to port %d: %w", c.localPort, c.remotePort, err)
		default:
			broken++
		}
	}
	return broken, nil
}

// sockDestroy is SOCK_DESTROY of linux/sock_diag.h.
const sockDestroy = 21

// destroyRequest is what the kernel is asked with: struct nlmsghdr and struct
// inet_diag_req_v2 (linux/netlink.h, linux/inet_diag.h).
func destroyRequest(c connection) []byte {
	var b bytes.Buffer
	put := func(v any) { _ = binary.Write(&b, binary.NativeEndian, v) } // never fails on a buffer
	const size = 16 + 56
	put(uint32(size))
	put(uint16(sockDestroy))
	put(uint16(unix.NLM_F_REQUEST | unix.NLM_F_ACK))
	put(uint32(1)) // sequence
	put(uint32(0)) // to the kernel
	b.Write([]byte{unix.AF_INET, unix.IPPROTO_TCP, 0, 0})
	put(^uint32(0)) // in any state
	_ = binary.Write(&b, binary.BigEndian, c.localPort)
	_ = binary.Write(&b, binary.BigEndian, c.remotePort)
	b.Write(c.local[:])
	b.Write(make([]byte, 12))
	b.Write(c.remote[:])
	b.Write(make([]byte, 12))
	put(uint32(0))  // any interface
	put(^uint64(0)) // whatever its cookie
	return b.Bytes()
}

func destroy(fd int, c connection) error {
	if err := unix.Sendto(fd, destroyRequest(c), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return err
	}
	// struct nlmsgerr follows the header: a negative errno, or 0.
	if n < 20 || binary.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR {
		return fmt.Errorf("the kernel's answer of %d bytes is not understood", n)
	}
	if code := int32(binary.NativeEndian.Uint32(answer[16:])); code != 0 {
		return unix.Errno(-code)
	}
	return nil
}
