package startd

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"podstarter/classads"
	"podstarter/internal/cedar"
)

// Knobs reads the configuration.
type Knobs interface {
	Lookup(name string) (string, bool)
	Int(name string, def int64) (int64, error)
	Bool(name string, def bool) (bool, error)
}

// An Address is the starter's own: the shared port's with the id of the starter's
// endpoint (condor_io/shared_port_endpoint.cpp:InitRemoteAddress). It can change while a
// job runs: a broker (CCB) gives a shared port that is started again another id.
type Address struct {
	inherited *Inheritance
	port      string // of a starter with a port of its own
	file      string // into which the shared port writes its address; empty: there is none

	mu   sync.Mutex
	base cedar.Sinful // the shared port's, as the file had it last
}

// OwnAddress returns the starter's address. Before the shared port's file can be read, it
// is made from the startd's address, which is behind the same port.
func (h *Inheritance) OwnAddress(k Knobs) *Address {
	a := &Address{inherited: h, base: h.Parent}
	if h.EndpointID == "" {
		a.port = h.portAddress(k)
	}
	if path, ok := k.Lookup("SHARED_PORT_DAEMON_AD_FILE"); ok {
		a.file = path
	}
	return a
}

// String returns the address of now, in angle brackets. Safe for concurrent use.
func (a *Address) String() string {
	id := a.inherited.EndpointID
	if id == "" {
		return a.port
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file != "" {
		// A shared port that is being started again has removed the file.
		if s, err := sharedPortAddress(a.file); err == nil {
			a.base = s
		}
	}
	return a.base.WithSock(id).String()
}

// Network returns which addresses of other daemons can be used from here. A protocol is
// not used if the site says so, or if HTCondor's tools found no address of it
// (condor_io/sock.cpp:chooseAddrFromAddrs).
func Network(k Knobs) cedar.Network {
	var n cedar.Network
	n.Private, _ = k.Lookup("PRIVATE_NETWORK_NAME")
	_, has4 := k.Lookup("IPV4_ADDRESS")
	_, has6 := k.Lookup("IPV6_ADDRESS")
	n.NoIPv4 = isFalse(k, "ENABLE_IPV4") || has6 && !has4
	n.NoIPv6 = isFalse(k, "ENABLE_IPV6") || has4 && !has6
	if !isFalse(k, "IGNORE_TARGET_PROTOCOL_PREFERENCE") {
		n.Prefer = cedar.IPv4
		if isFalse(k, "PREFER_OUTBOUND_IPV4") {
			n.Prefer = cedar.IPv6
		}
	}
	if isFalse(k, "BIND_ALL_INTERFACES") {
		n.FromIPv4, _ = k.Lookup("IPV4_ADDRESS")
		n.FromIPv6, _ = k.Lookup("IPV6_ADDRESS")
	}
	// A value that is not a number counts as none; the settings tell of it.
	slow, _ := k.Int("TIMEOUT_MULTIPLIER", 0)
	slow, _ = k.Int("STARTER_TIMEOUT_MULTIPLIER", slow) // daemon.cpp:common_init
	n.Slow = cedar.Multiplier(max(0, min(slow, mostSlow)))
	return n
}

// mostSlow bounds TIMEOUT_MULTIPLIER.
const mostSlow = 1 << 20

// isFalse reports whether a knob says no; auto is not no.
func isFalse(k Knobs, name string) bool {
	v, err := k.Bool(name, true)
	return err == nil && !v
}

// maxAdFile bounds the shared port's file, in bytes; it has some hundred.
const maxAdFile = 1 << 20

func sharedPortAddress(path string) (cedar.Sinful, error) {
	text, err := readRegular(path, maxAdFile)
	if err != nil {
		return cedar.Sinful{}, err
	}
	ad, err := classads.ParseOld(text)
	if err != nil {
		return cedar.Sinful{}, fmt.Errorf("%s: %w", path, err)
	}
	address, err := ad.GetString("MyAddress")
	if err != nil {
		return cedar.Sinful{}, fmt.Errorf("%s: %w", path, err)
	}
	s, err := cedar.ParseSinful(address)
	if err == nil && s.Port == 0 {
		err = fmt.Errorf("%s: the shared port is not listening yet", path)
	}
	return s, err
}

// readRegular reads a file in a directory that belongs to somebody else: a pipe
// there must not block the starter.
func readRegular(path string, limit int64) (string, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return "", &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	fi, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !fi.Mode().IsRegular() {
		return "", fmt.Errorf("%s: %w", path, errors.New("it is not a regular file"))
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return "", err
	}
	if int64(len(b)) > limit {
		return "", fmt.Errorf("%s: it has more than %d bytes", path, limit)
	}
	return string(b), nil
}
