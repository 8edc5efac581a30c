package harness

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Connection is an established TCP connection as one of its ends sees it.
type Connection struct {
	LocalPort, RemotePort uint16
	Inode                 uint64 // of the socket, as the links in /proc/PID/fd name it
	local, remote         netip.Addr
}

// established lists the connections of a table in the form of /proc/net/tcp or tcp6
// (proc_pid_net(5)).
func established(table []byte) ([]Connection, error) {
	const state = "01" // TCP_ESTABLISHED
	var found []Connection
	lines := bufio.NewScanner(bytes.NewReader(table))
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 10 || fields[3] != state {
			continue // the heading has words in the place of numbers
		}
		var c Connection
		var err error
		if c.local, c.LocalPort, err = endpoint(fields[1]); err != nil {
			return nil, err
		}
		if c.remote, c.RemotePort, err = endpoint(fields[2]); err != nil {
			return nil, err
		}
		if c.Inode, err = strconv.ParseUint(fields[9], 10, 64); err != nil {
			return nil, fmt.Errorf("%q is not an inode of a table of connections", fields[9])
		}
		found = append(found, c)
	}
	return found, lines.Err()
}

// endpoint reads 0100007F:2580, an address as the machine stores it and a port.
func endpoint(text string) (address netip.Addr, port uint16, err error) {
	host, number, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	if err != nil || len(raw) != 4 && len(raw) != 16 {
		return address, 0, fmt.Errorf("%q is not an address of a table of connections", text)
	}
	n, err := strconv.ParseUint(number, 16, 16)
	if err != nil {
		return address, 0, fmt.Errorf("%q is not an address of a table of connections", text)
	}
	// The printed numbers of the machine become bytes again.
	for word := raw; len(word) > 0; word = word[4:] {
		binary.NativeEndian.PutUint32(word, binary.BigEndian.Uint32(word))
	}
	address, _ = netip.AddrFromSlice(raw)
	return address, uint16(n), nil
}

// BreakConnections breaks the established connections that keep selects in the network of a
// process, as a network does that loses its state: both ends notice at once, and neither
// has closed it (sock_diag(7): SOCK_DESTROY). It returns how many were broken.
func BreakConnections(pid int, keep func(Connection) bool) (int, error) {
	all, err := connections(pid)
	if err != nil {
		return 0, err
	}
	all = slices.DeleteFunc(all, func(c Connection) bool { return !keep(c) })
	broken := 0
	err = inNetwork(pid, func() error {
		broken, err = breakAll(all)
		return err
	})
	return broken, err
}

// connections lists the established connections in the network of a process.
func connections(pid int) ([]Connection, error) {
	var all []Connection
	for _, name := range []string{"tcp", "tcp6"} {
		table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, name))
		if err != nil {
			return nil, fmt.Errorf("listing connections: %w", err)
		}
		some, err := established(table)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all, nil
}

// inNetwork runs f on a thread in the network of a process. The thread ends with it: the
// goroutine does not unlock it.
func inNetwork(pid int, f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		done <- func() error {
			fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/net", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				return fmt.Errorf("joining the network of process %d: %w", pid, err)
			}
			defer unix.Close(fd)
			if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
				return fmt.Errorf("joining the network of process %d: %w", pid, err)
			}
			return f()
		}()
	}()
	return <-done
}

// breakAll breaks connections of the network that this thread is in.
func breakAll(all []Connection) (int, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return 0, fmt.Errorf("asking the kernel to break connections: %w", err)
	}
	defer unix.Close(fd)
	broken := 0
	for _, c := range all {
		err := destroy(fd, c)
		if errors.Is(err, unix.EOPNOTSUPP) { // a kernel without CONFIG_INET_DIAG_DESTROY
			err = reset(c)
		}
		switch {
		case errors.Is(err, unix.ENOENT): // the other end went with it
		case err != nil:
			return broken, fmt.Errorf("asking the kernel to break the connection from port %d to port %d: %w", c.LocalPort, c.RemotePort, err)
		default:
			broken++
		}
	}
	return broken, nil
}

// Requests to the kernel about a socket (linux/sock_diag.h), and the cookie of any.
const (
	sockByFamily = 20 // SOCK_DIAG_BY_FAMILY
	sockDestroy  = 21 // SOCK_DESTROY
	anyCookie    = ^uint64(0)
)

// socketRequest is a request to the kernel: struct nlmsghdr and struct
// inet_diag_req_v2 (linux/netlink.h, linux/inet_diag.h).
func socketRequest(what uint16, c Connection, cookie uint64) []byte {
	var b bytes.Buffer
	put := func(v any) { _ = binary.Write(&b, binary.NativeEndian, v) } // never fails on a buffer
	const size = 16 + 56
	put(uint32(size))
	put(what)
	put(uint16(unix.NLM_F_REQUEST | unix.NLM_F_ACK))
	put(uint32(1)) // sequence
	put(uint32(0)) // to the kernel
	family := byte(unix.AF_INET)
	if c.local.Is6() {
		family = unix.AF_INET6
	}
	b.Write([]byte{family, unix.IPPROTO_TCP, 0, 0})
	put(^uint32(0)) // in any state
	_ = binary.Write(&b, binary.BigEndian, c.LocalPort)
	_ = binary.Write(&b, binary.BigEndian, c.RemotePort)
	for _, address := range []netip.Addr{c.local, c.remote} {
		var words [16]byte
		copy(words[:], address.AsSlice())
		b.Write(words[:])
	}
	put(uint32(0)) // any interface
	put(cookie)
	return b.Bytes()
}

// destroy breaks the connection, and no other socket: once the connection has gone, the
// kernel finds the one that listens on its port.
func destroy(fd int, c Connection) error {
	answer, err := ask(fd, socketRequest(sockByFamily, c, anyCookie))
	if err != nil {
		return err
	}
	// struct inet_diag_msg follows the header.
	const cookie, inode = 16 + 44, 16 + 68
	if len(answer) < inode+4 || binary.NativeEndian.Uint16(answer[4:]) != sockByFamily {
		return fmt.Errorf("the kernel's answer of %d bytes has an unknown form", len(answer))
	}
	if uint64(binary.NativeEndian.Uint32(answer[inode:])) != c.Inode {
		return unix.ENOENT
	}
	_, err = ask(fd, socketRequest(sockDestroy, c, binary.NativeEndian.Uint64(answer[cookie:])))
	if errors.Is(err, unix.ESTALE) { // another socket by now
		return unix.ENOENT
	}
	return err
}

// ask sends the kernel a request and returns its answer, up to the word that it is done: struct
// nlmsgerr, which is a negative errno, or 0.
func ask(fd int, request []byte) ([]byte, error) {
	if err := unix.Sendto(fd, request, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return nil, err
	}
	var all []byte
	for buffer := make([]byte, 4096); ; {
		n, _, err := unix.Recvfrom(fd, buffer, 0)
		if err != nil {
			return nil, err
		}
		for rest := buffer[:n]; len(rest) > 0; {
			size := 0
			if len(rest) >= 20 {
				size = int(binary.NativeEndian.Uint32(rest))
			}
			if size < 20 || size > len(rest) {
				return nil, fmt.Errorf("the kernel's answer of %d bytes has an unknown form", n)
			}
			if binary.NativeEndian.Uint16(rest[4:]) == unix.NLMSG_ERROR {
				if code := int32(binary.NativeEndian.Uint32(rest[16:])); code != 0 {
					return nil, unix.Errno(-code)
				}
				return all, nil
			}
			all = append(all, rest[:size]...)
			rest = rest[min(len(rest), (size+3)&^3):]
		}
	}
}

// reset breaks a connection through the descriptor of a process that has it: a socket that is connected to nothing resets the
// connection that it had (connect(2): AF_UNSPEC). The error is ENOENT if no process has it any more.
func reset(c Connection) error {
	links, err := filepath.Glob("/proc/[0-9]*/fd/*")
	if err != nil {
		return err
	}
	for _, link := range links {
		if target, err := os.Readlink(link); err != nil || target != fmt.Sprintf("socket:[%d]", c.Inode) {
			continue
		}
		var pid, number int
		if _, err := fmt.Sscanf(link, "/proc/%d/fd/%d", &pid, &number); err != nil {
			return err
		}
		return disconnect(pid, number)
	}
	return unix.ENOENT
}

// disconnect does that to a descriptor of another process.
func disconnect(pid, number int) error {
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	defer unix.Close(process)
	fd, err := unix.PidfdGetfd(process, number, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	unspecified := unix.RawSockaddr{Family: unix.AF_UNSPEC}
	if _, _, errno := unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&unspecified)), unsafe.Sizeof(unspecified)); errno != 0 {
		return errno
	}
	return nil
}

// Sockets are the inodes of a process's sockets.
func (p Process) Sockets() ([]uint64, error) {
	dir := filepath.Join("/proc", strconv.Itoa(p.PID), "fd")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("listing the sockets of %v: %w", p, err)
	}
	var all []uint64
	for _, entry := range entries {
		target, err := os.Readlink(filepath.Join(dir, entry.Name()))
		if err != nil {
			continue // closed meanwhile
		}
		var inode uint64
		if n, err := fmt.Sscanf(target, "socket:[%d]", &inode); err == nil && n == 1 {
			all = append(all, inode)
		}
	}
	return all, nil
}

// BreakOff breaks the connections of a process to a port.
func BreakOff(p Process, port uint16) (int, error) {
	sockets, err := p.Sockets()
	if err != nil {
		return 0, err
	}
	return BreakConnections(p.PID, func(c Connection) bool { return c.RemotePort == port && slices.Contains(sockets, c.Inode) })
}

// BreakAllOf breaks all connections of a process, those to its own machine excepted.
func BreakAllOf(p Process) (int, error) {
	sockets, err := p.Sockets()
	if err != nil {
		return 0, err
	}
	return BreakConnections(p.PID, func(c Connection) bool { return c.local != c.remote && slices.Contains(sockets, c.Inode) })
}

// Port is where all daemons of an execution point are reached (SHARED_PORT_PORT).
func (p *Pool) Port(side Side) (uint16, error) {
	return p.port(map[Side]string{Ours: "glidein", Stock: "glidein-stock"}[side])
}

// SubmitPort is the same port of the submit side.
func (p *Pool) SubmitPort() (uint16, error) { return p.port("pool") }

func (p *Pool) port(pod string) (uint16, error) {
	text, err := os.ReadFile(filepath.Join(p.State, "settings.json"))
	if err != nil {
		return 0, fmt.Errorf("finding the port of pod %q: %w", pod, err)
	}
	var settings struct{ Ports map[string]uint16 }
	if err := json.Unmarshal(text, &settings); err != nil {
		return 0, fmt.Errorf("finding the port of pod %q: %w", pod, err)
	}
	if settings.Ports[pod] == 0 {
		return 0, fmt.Errorf("the pool's settings have no port of pod %q", pod)
	}
	return settings.Ports[pod], nil
}
