package chirp

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// stranger is a connection that has not sent the cookie yet.
type stranger struct {
	conn net.Conn
	own  bool          // of the job's user
	gone chan struct{} // closed when it is evicted
}

// evict makes room: it closes the oldest connection of another user, else the
// oldest of all. An honest client sends the cookie at once. The caller holds mu.
func (s *Server) evict() {
	i := max(slices.IndexFunc(s.strange, func(one *stranger) bool { return !one.own }), 0)
	one := s.strange[i]
	s.strange = slices.Delete(s.strange, i, i+1)
	close(one.gone)
	one.conn.Close()
}

// met records that a connection is no longer a stranger's.
func (s *Server) met(one *stranger) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.strange, one); i >= 0 {
		s.strange = slices.Delete(s.strange, i, i+1)
	}
}

// isOwn reports whether the job's user made a connection; false if unknown. The
// containers of all slots of a pod share its network.
func (s *Server) isOwn(conn net.Conn) bool {
	if s.o.UID == 0 {
		return false
	}
	uid, err := userOf(conn)
	return err == nil && int(uid) == s.o.UID
}

var errNoUser = errors.New("the kernel does not report the socket's user")

// userOf asks the kernel which user owns the other end of a connection within
// this network namespace (sock_diag(7)).
func userOf(conn net.Conn) (uint32, error) {
	peer, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil {
		return 0, err
	}
	own, err := netip.ParseAddrPort(conn.LocalAddr().String())
	if err != nil {
		return 0, err
	}
	family := uint8(unix.AF_INET)
	if peer.Addr().Unmap().Is6() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return 0, err
	}
	defer func() { _ = unix.Close(fd) }()
	// The kernel answers before sendto returns.
	if err := unix.Sendto(fd, diagRequest(family, peer, own), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, err
	}
	var answer [4096]byte
	n, _, err := unix.Recvfrom(fd, answer[:], unix.MSG_DONTWAIT)
	if err != nil {
		return 0, err
	}
	return diagUser(answer[:n])
}

// Layout of messages (linux/netlink.h: struct nlmsghdr, linux/inet_diag.h: struct
// inet_diag_req_v2, inet_diag_sockid, inet_diag_msg).
const (
	sockDiagByFamily = 20
	headerSize       = 16
	sockIDSize       = 48
	requestSize      = headerSize + 8 + sockIDSize
	userOffset       = headerSize + 4 + sockIDSize + 12
)

// diagRequest asks for the socket from one address to another.
func diagRequest(family uint8, from, to netip.AddrPort) []byte {
	b := make([]byte, requestSize)
	binary.NativeEndian.PutUint32(b, requestSize)
	binary.NativeEndian.PutUint16(b[4:], sockDiagByFamily)
	binary.NativeEndian.PutUint16(b[6:], unix.NLM_F_REQUEST)
	b[headerSize], b[headerSize+1] = family, unix.IPPROTO_TCP
	binary.NativeEndian.PutUint32(b[headerSize+4:], ^uint32(0)) // in whichever state
	id := b[headerSize+8:]
	binary.BigEndian.PutUint16(id, from.Port())
	binary.BigEndian.PutUint16(id[2:], to.Port())
	copy(id[4:20], from.Addr().Unmap().AsSlice())
	copy(id[20:36], to.Addr().Unmap().AsSlice())
	binary.NativeEndian.PutUint64(id[40:], ^uint64(0)) // INET_DIAG_NOCOOKIE
	return b
}

func diagUser(b []byte) (uint32, error) {
	if len(b) < userOffset+4 || binary.NativeEndian.Uint16(b[4:]) != sockDiagByFamily {
		return 0, errNoUser
	}
	return binary.NativeEndian.Uint32(b[userOffset:]), nil
}
