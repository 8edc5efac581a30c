package cedar

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// States and special states of a serialized socket (condor_io/sock.h:
// sock_state, reli_sock.h: relisock_state).
const (
	stateConnect     = 3
	stateSpecial     = 6
	specialListening = 1
)

// Protocols of a serialized socket's crypto (condor_io/CryptKey.h).
const (
	protocolNone     = 0
	protocolBlowfish = 1
	protocol3DES     = 2
	protocolAES      = 3
)

// maxSerialized is the largest length of a serialized socket; a real one has
// about six hundred bytes.
const maxSerialized = 16 << 10

// serialized holds the fields of a serialized socket (sock.cpp:
// serialize, reli_sock.cpp:serialize).
type serialized struct {
	fd       int
	state    int
	timeout  time.Duration
	user     string
	version  string
	special  int
	peer     string
	key      []byte // nil: plaintext
	sent     uint32 // packets so far
	received uint32
	sendIV   [ivSize]byte
	recvIV   [ivSize]byte
	sendDone bool // the first encrypted packet was sent
	recvDone bool
	digests  [2 * digestSize]byte // sent, received
}

// fields walks over the '*' separated fields of the text.
type fields struct {
	rest string
	err  error
}

func (f *fields) str(what string) string {
	if f.err != nil {
		return ""
	}
	v, rest, found := strings.Cut(f.rest, "*")
	if !found {
		f.err = fmt.Errorf("the field %q is missing", what)
		return ""
	}
	f.rest = rest
	return v
}

// num takes a number from 0 to limit. Errors do not show the text, which
// could be a secret in the wrong place.
func (f *fields) num(what string, limit int) int {
	v := f.str(what)
	if f.err != nil {
		return 0
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 || n > limit {
		f.err = fmt.Errorf("the field %q is not a number from 0 to %d", what, limit)
		return 0
	}
	return n
}

func (f *fields) hex(what string, dst []byte) {
	v := f.str(what)
	if f.err != nil {
		return
	}
	if len(v) != 2*len(dst) {
		f.err = fmt.Errorf("the field %q has %d characters, not %d", what, len(v), 2*len(dst))
		return
	}
	if _, err := hex.Decode(dst, []byte(v)); err != nil {
		f.err = fmt.Errorf("the field %q is not hexadecimal", what)
	}
}

const maxNumber = 1<<31 - 1

func parseSerialized(text string) (*serialized, error) {
	if len(text) > maxSerialized {
		return nil, fmt.Errorf("it has %d bytes, at most %d are allowed", len(text), maxSerialized)
	}
	f := &fields{rest: text}
	s := &serialized{fd: f.num("fd", maxNumber), state: f.num("state", 99)}
	s.timeout = time.Duration(f.num("timeout", maxNumber)) * time.Second
	f.num("tried authentication", 1)
	userLen := f.num("length of user", maxSerialized)
	versionLen := f.num("length of peer version", maxSerialized)
	s.user = f.str("user")
	s.version = f.str("peer version")
	if f.err == nil && (len(s.user) != userLen || len(s.version) != versionLen) {
		return nil, errors.New("the lengths of user and peer version are not those announced")
	}
	// Blanks would end the token in the environment variable, so the sender
	// replaced them (sock.cpp:serialize).
	s.version = strings.ReplaceAll(s.version, "_", " ")
	s.special = f.num("special state", 99)
	s.peer = f.str("peer")
	s.crypto(f)
	s.messages(f)
	if n := f.num("MAC key", maxNumber); n != 0 && f.err == nil {
		return nil, errors.New("it uses message digests of a legacy cipher; only AES is supported (SEC_DEFAULT_CRYPTO_METHODS)")
	}
	if f.err != nil {
		return nil, f.err
	}
	return s, nil
}

// crypto takes the key and the state of the cipher (sock.cpp:
// serializeCryptoInfo).
func (s *serialized) crypto(f *fields) {
	n := f.num("length of key", 2*1024)
	if n == 0 || f.err != nil {
		return
	}
	protocol := f.num("protocol", 99)
	f.num("encryption", 1)
	if f.err != nil {
		return
	}
	switch protocol {
	case protocolAES:
	case protocolNone, protocolBlowfish, protocol3DES:
		f.err = fmt.Errorf("its cipher is number %d; only AES (%d) is supported (SEC_DEFAULT_CRYPTO_METHODS)", protocol, protocolAES)
		return
	default:
		f.err = fmt.Errorf("its cipher has the unknown number %d", protocol)
		return
	}
	if n != 2*keySize {
		f.err = fmt.Errorf("its key has %d hexadecimal digits, not %d", n, 2*keySize)
		return
	}
	// A struct as it is in the sender's memory: two counters, two IVs.
	var state [8 + 2*ivSize]byte
	f.hex("state of the cipher", state[:])
	s.key = make([]byte, keySize)
	f.hex("key", s.key)
	s.sent = binary.NativeEndian.Uint32(state[:])
	s.received = binary.NativeEndian.Uint32(state[4:])
	copy(s.sendIV[:], state[8:])
	copy(s.recvIV[:], state[8+ivSize:])
}

// messages takes the digests of the handshake (reli_sock.cpp:
// serializeMsgInfo).
func (s *serialized) messages(f *fields) {
	f.num("final send digest", 1)
	f.num("final receive digest", 1)
	s.sendDone = f.num("first packet sent", 1) == 1
	s.recvDone = f.num("first packet received", 1) == 1
	switch n := f.num("length of digests", maxNumber); {
	case f.err != nil || n == 0:
	case n == len(s.digests):
		f.hex("digests", s.digests[:])
	default:
		f.err = fmt.Errorf("its digests have %d bytes, not %d", n, len(s.digests))
	}
}

// Adopt makes a stream of a connected socket that the parent process handed
// down, from its description in CONDOR_INHERIT. The stream goes on exactly
// where the parent stopped, with its key, counters and digests. The number of
// the descriptor is not valid afterwards; its successor is closed on exec.
// The error never shows the description, which has the key in it.
func Adopt(text string) (*Stream, error) {
	d, err := parseSerialized(text)
	if err != nil {
		return nil, fmt.Errorf("adopt an inherited connection: %w", err)
	}
	if d.special != 0 || d.state != stateConnect {
		return nil, fmt.Errorf("adopt an inherited connection: the socket (fd %d) is not connected, its state is %d/%d", d.fd, d.state, d.special)
	}
	conn, err := takeConn(d.fd)
	if err != nil {
		return nil, fmt.Errorf("adopt an inherited connection: %w", err)
	}
	s := NewStream(prepare(conn))
	s.user, s.peerVersion = d.user, d.version
	if d.peer != "" {
		s.peer = d.peer
	}
	s.SetTimeout(d.timeout)
	if d.key == nil {
		return s, nil
	}
	aead, err := newAEAD(d.key)
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("adopt an inherited connection: %w", err)
	}
	s.send.half = half{aead: aead, iv: d.sendIV, counter: d.sent, bound: d.sendDone}
	s.recv.half = half{aead: aead, iv: d.recvIV, counter: d.received, bound: d.recvDone}
	copy(s.send.first[:], d.digests[:])
	copy(s.recv.first[:], d.digests[digestSize:])
	copy(s.recv.first[digestSize:], d.digests[:digestSize])
	s.key = func() []byte { return d.key }
	return s, nil
}

// Serialize describes the stream for Adopt in a process that has its socket
// as descriptor fd. Nothing may be on its way in either direction; the stream
// must not be used any more.
func (s *Stream) Serialize(fd int) (string, error) {
	if len(s.send.buf) > 0 || s.Buffered() || s.recv.inMessage {
		return "", errors.New("hand a connection down: a message is on its way")
	}
	version := strings.ReplaceAll(s.peerVersion, " ", "_")
	seconds := int(s.deadline.get() / time.Second)
	text := fmt.Sprintf("%d*%d*%d*%d*%d*%d*%s*%s*0*%s*", fd, stateConnect, seconds, bit(s.user != ""), len(s.user), len(version), s.user, version, s.peer)
	if s.Encrypted() {
		var state [8 + 2*ivSize]byte
		binary.NativeEndian.PutUint32(state[:], s.send.counter)
		binary.NativeEndian.PutUint32(state[4:], s.recv.counter)
		copy(state[8:], s.send.iv[:])
		copy(state[8+ivSize:], s.recv.iv[:])
		text += fmt.Sprintf("%d*%d*1*%X*%X*1*1*%d*%d*%d*%X*", 2*keySize, protocolAES, state, s.key(),
			bit(s.send.bound), bit(s.recv.bound), 2*digestSize, s.send.first[:2*digestSize])
	} else {
		text += "0*0*0*0*0*0*"
	}
	return text + "0*", nil
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// takeConn makes a connection of an inherited descriptor.
func takeConn(fd int) (net.Conn, error) {
	f, err := takeSocket(fd)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("use descriptor %d as a connection: %w", fd, err)
	}
	return conn, nil
}

// takeSocket takes an inherited descriptor after checking that it is a stream
// socket: a wrong number must not close something else.
func takeSocket(fd int) (*os.File, error) {
	if fd <= 2 {
		return nil, fmt.Errorf("descriptor %d is a standard stream, not an inherited socket", fd)
	}
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil {
		return nil, fmt.Errorf("descriptor %d is not an open socket: %w", fd, err)
	}
	if kind != unix.SOCK_STREAM {
		return nil, fmt.Errorf("descriptor %d is not a stream socket", fd)
	}
	unix.CloseOnExec(fd)
	return os.NewFile(uintptr(fd), "inherited socket"), nil
}

// sharedPortItem begins the description of a shared port endpoint.
const sharedPortItem = "SharedPort:"

// ListenInherited makes a listener of a socket that the parent process handed
// down: either the item SharedPort:<name>*<socket> of CONDOR_INHERIT, whose
// listener is a *SharedPort, or the description of a listening TCP socket. The
// second result is the endpoint's id, empty for TCP.
func ListenInherited(text string) (net.Listener, string, error) {
	l, id, err := listenInherited(text)
	if err != nil {
		return nil, "", fmt.Errorf("adopt an inherited command socket: %w", err)
	}
	return l, id, nil
}

func listenInherited(text string) (net.Listener, string, error) {
	id := ""
	shared := strings.HasPrefix(text, sharedPortItem)
	if shared {
		var name string
		var found bool
		name, text, found = strings.Cut(text[len(sharedPortItem):], "*")
		if !found {
			return nil, "", errors.New("the field \"name\" is missing")
		}
		id = name[strings.LastIndexByte(name, '/')+1:]
		if !validEndpoint(id) {
			return nil, "", errors.New("the name of the endpoint has a character that is not allowed")
		}
	}
	d, err := parseSerialized(text)
	if err != nil {
		return nil, "", err
	}
	if d.special != specialListening {
		return nil, "", fmt.Errorf("the socket (fd %d) is not listening, its state is %d/%d", d.fd, d.state, d.special)
	}
	f, err := takeSocket(d.fd)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, "", fmt.Errorf("use descriptor %d as a listener: %w", d.fd, err)
	}
	switch l := l.(type) {
	case *net.UnixListener:
		if shared {
			// The parent unlinks the socket file; this process must not.
			l.SetUnlinkOnClose(false)
			return SharedPortListener(l), id, nil
		}
	case *net.TCPListener:
		if !shared {
			return l, "", nil
		}
	}
	_ = l.Close()
	return nil, "", fmt.Errorf("the listening socket (fd %d) is of another family than its description says", d.fd)
}
