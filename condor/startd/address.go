package startd

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"

	"podstarter/classads"
	"podstarter/internal/cedar"
)

// Knobs reads the configuration.
type Knobs interface {
	Lookup(name string) (string, bool)
	Int(name string, def int64) (int64, error)
}

// OwnAddress returns the starter's address in angle brackets: the shared port's
// address with the id of the starter's endpoint
// (condor_io/shared_port_endpoint.cpp:InitRemoteAddress). The shared port
// writes its address to a file; if that cannot be read, the startd's own
// address, which is behind the same port, gives the same result.
func (h *Inheritance) OwnAddress(k Knobs) string {
	if h.EndpointID == "" {
		return h.portAddress()
	}
	base := h.Parent
	if path, ok := k.Lookup("SHARED_PORT_DAEMON_AD_FILE"); ok {
		if s, err := sharedPortAddress(path); err == nil {
			base = s
		}
	}
	return base.WithSock(h.EndpointID).String()
}

// portAddress returns the address of a starter with a port of its own, on the
// startd's host.
func (h *Inheritance) portAddress() string {
	s := cedar.Sinful{Host: h.Parent.Host, Params: map[string]string{"noUDP": ""}}
	if alias := h.Parent.Alias(); alias != "" {
		s.Params["alias"] = alias
	}
	if h.Listener == nil {
		return s.String()
	}
	if a, ok := h.Listener.Addr().(*net.TCPAddr); ok {
		s.Port = a.Port
		if s.Host == "" || !a.IP.IsUnspecified() && !a.IP.IsLoopback() {
			s.Host = a.IP.String()
		}
	}
	return s.String()
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
