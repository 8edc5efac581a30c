package cedar

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Names of the parameters of a Sinful that mean something to a starter.
const (
	paramAddrs   = "addrs"
	paramAlias   = "alias"
	paramCCB     = "CCBID"
	paramNoUDP   = "noUDP"
	paramPrivate = "PrivAddr"
	paramNetwork = "PrivNet"
	paramSock    = "sock"
)

// maxSinful is the largest length of an address. A daemon with a dozen brokers
// and addresses needs less than a tenth of it.
const maxSinful = 16 << 10

// Sinful is the address of a daemon, <host:port?key=value&...>
// (condor_utils/condor_sinful.cpp). The zero value is not an address.
type Sinful struct {
	Host   string            // without the brackets of IPv6
	Port   int               // 0: none
	Params map[string]string // decoded; nil if there are none. Not to be changed: With makes a changed copy
}

// ParseSinful reads an address in angle brackets. The brackets may be
// missing, as in the contact strings of brokers.
func ParseSinful(text string) (Sinful, error) {
	if len(text) > maxSinful {
		return Sinful{}, fmt.Errorf("parse an address of %d bytes: at most %d are allowed", len(text), maxSinful)
	}
	s, err := parseSinful(text)
	if err != nil {
		return Sinful{}, fmt.Errorf("parse address %q: %w", text, err)
	}
	return s, nil
}

func parseSinful(text string) (s Sinful, err error) {
	for _, c := range []byte(text) {
		if c <= ' ' || c == 0x7f {
			return s, errors.New("it has a blank or control character")
		}
	}
	if inner, found := strings.CutPrefix(text, "<"); found {
		if text, found = strings.CutSuffix(inner, ">"); !found {
			return s, errors.New("the closing '>' is missing")
		}
	}
	if strings.ContainsAny(text, "<>") {
		return s, errors.New("it has an angle bracket inside")
	}
	place, params, _ := strings.Cut(text, "?")
	port := ""
	if rest, found := strings.CutPrefix(place, "["); found {
		s.Host, port, found = strings.Cut(rest, "]")
		if !found {
			return s, errors.New("the closing ']' is missing")
		}
		if _, err := netip.ParseAddr(s.Host); err != nil {
			return s, errors.New("the text in brackets is not an IPv6 address")
		}
		if port != "" && port[0] != ':' {
			return s, errors.New("the port does not follow the host")
		}
		port = strings.TrimPrefix(port, ":")
	} else {
		s.Host, port, _ = strings.Cut(place, ":")
	}
	if strings.ContainsAny(s.Host, "[]/&;=") {
		return s, errors.New("the host is not valid")
	}
	if port != "" {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return s, errors.New("the port is not a number from 0 to 65535")
		}
		s.Port = int(n)
	}
	if s.Params, err = parseParams(params); err != nil {
		return s, err
	}
	if s.Host == "" && s.Params == nil {
		return s, errors.New("it is empty")
	}
	if _, err := s.addrs(); err != nil {
		return s, err
	}
	if id, found := s.Params[paramSock]; found && !validEndpoint(id) {
		return s, errors.New("the shared port id has a character that is not allowed")
	}
	return s, nil
}

func parseParams(text string) (map[string]string, error) {
	var params map[string]string
	for item := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '&' || r == ';' }) {
		k, v, _ := strings.Cut(item, "=")
		key, err := unescape(k)
		if err != nil {
			return nil, err
		}
		if key == "" {
			return nil, errors.New("a parameter has no name")
		}
		value, err := unescape(v)
		if err != nil {
			return nil, err
		}
		if params == nil {
			params = map[string]string{}
		}
		params[key] = value
	}
	return params, nil
}

// validEndpoint reports whether id may name a shared port endpoint.
func validEndpoint(id string) bool {
	if id == "" || id == "." || id == ".." {
		return false
	}
	for _, c := range []byte(id) {
		if !alphanumeric(c) && c != '.' && c != '_' && c != '-' {
			return false
		}
	}
	return true
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func unescape(s string) (string, error) {
	if !strings.Contains(s, "%") {
		return s, nil
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "%")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		if len(after) < 2 {
			return "", errors.New("a % is not followed by two hex digits")
		}
		n, err := strconv.ParseUint(after[:2], 16, 8)
		if err != nil {
			return "", errors.New("a % is not followed by two hex digits")
		}
		b.WriteByte(byte(n))
		s = after[2:]
	}
}

func escape(b *strings.Builder, s string) {
	for _, c := range []byte(s) {
		if alphanumeric(c) || strings.IndexByte("._-:#[]+", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(b, "%%%02x", c)
		}
	}
}

// String prints the address with its brackets, parameters in ascending order.
func (s Sinful) String() string {
	if s.IsZero() {
		return ""
	}
	return "<" + s.bare() + ">"
}

func (s Sinful) bare() string {
	var b strings.Builder
	if strings.Contains(s.Host, ":") {
		b.WriteString("[" + s.Host + "]")
	} else {
		b.WriteString(s.Host)
	}
	b.WriteString(":" + strconv.Itoa(s.Port))
	sep := byte('?')
	for _, k := range slices.Sorted(maps.Keys(s.Params)) {
		b.WriteByte(sep)
		sep = '&'
		escape(&b, k)
		if v := s.Params[k]; v != "" {
			b.WriteByte('=')
			escape(&b, v)
		}
	}
	return b.String()
}

// IsZero reports whether s is no address.
func (s Sinful) IsZero() bool { return s.Host == "" && s.Port == 0 && len(s.Params) == 0 }

// With returns a copy in which a parameter has a value.
func (s Sinful) With(key, value string) Sinful {
	p := maps.Clone(s.Params)
	if p == nil {
		p = map[string]string{}
	}
	p[key] = value
	s.Params = p
	return s
}

// Without returns a copy that lacks a parameter.
func (s Sinful) Without(key string) Sinful {
	if _, found := s.Params[key]; found {
		s.Params = maps.Clone(s.Params)
		delete(s.Params, key)
	}
	return s
}

// SharedPortID returns the id of the endpoint behind a shared port, empty if
// the daemon has its own port.
func (s Sinful) SharedPortID() string { return s.Params[paramSock] }

// CCBID returns the brokers that can reach a daemon that accepts no
// connections, as blank separated host:port#id; empty if there are none.
func (s Sinful) CCBID() string { return s.Params[paramCCB] }

// Alias returns the host name that the daemon goes by.
func (s Sinful) Alias() string { return s.Params[paramAlias] }

// NoUDP reports whether the daemon has no UDP port.
func (s Sinful) NoUDP() bool { _, found := s.Params[paramNoUDP]; return found }

// WithSock returns the address of another endpoint behind the same shared
// port: id replaces the one of s, in its private address too
// (shared_port_endpoint.cpp:InitRemoteAddress).
func (s Sinful) WithSock(id string) Sinful {
	if inner, err := ParseSinful(s.Params[paramPrivate]); err == nil {
		s = s.With(paramPrivate, inner.With(paramSock, id).String())
	}
	return s.With(paramSock, id)
}

// Network tells which of a daemon's addresses can be used from here.
type Network struct {
	Private string // PRIVATE_NETWORK_NAME; empty if this machine is in none
	NoIPv4  bool   // ENABLE_IPV4 is false
	NoIPv6  bool   // ENABLE_IPV6 is false
	// Prefer is the protocol that is taken if a daemon has equally desirable addresses of
	// both; without one, the daemon's order counts.
	Prefer Protocol
	// FromIPv4 and FromIPv6 are addresses of this machine from which connections leave
	// (BIND_ALL_INTERFACES is false); empty for any.
	FromIPv4, FromIPv6 string
	// Slow makes the time limits of connections longer.
	Slow Multiplier
}

// Protocol is a version of the Internet Protocol; the zero value is none.
type Protocol int

// The protocols.
const (
	IPv4 Protocol = 4
	IPv6 Protocol = 6
)

// Route returns the address to connect to: the private one if both sides are
// in the same private network, then the most desirable one of its list. The
// parameters stay; this is what peers call the connect address
// (condor_daemon_client/daemon.cpp:Set_addr, sock.cpp:chooseAddrFromAddrs).
func (s Sinful) Route(n Network) (Sinful, error) {
	if n.Private != "" && s.Params[paramNetwork] == n.Private {
		if text := s.Params[paramPrivate]; text != "" {
			inner, err := ParseSinful(text)
			if err != nil {
				return s, fmt.Errorf("private address of %s: %w", s, err)
			}
			s = inner
		}
		s = s.Without(paramCCB)
	}
	list, err := s.addrs()
	if err != nil {
		return s, fmt.Errorf("address %s: %w", s, err)
	}
	best, rank := netip.AddrPort{}, 0
	for _, a := range list {
		if a.Addr().Is4() && n.NoIPv4 || a.Addr().Is6() && n.NoIPv6 {
			continue
		}
		if r := n.rank(a.Addr()); r > rank {
			best, rank = a, r
		}
	}
	if len(list) > 0 {
		if rank == 0 {
			return s, fmt.Errorf("address %s: none of its protocols is enabled here (ENABLE_IPV4, ENABLE_IPV6)", s)
		}
		s.Host, s.Port = best.Addr().String(), int(best.Port())
	}
	if s.Host == "" || s.Port == 0 {
		return s, fmt.Errorf("address %s has no host and port to connect to", s)
	}
	return s, nil
}

// DialAddress returns host:port in the form that package net wants.
func (s Sinful) DialAddress() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

// Addresses returns the list of addresses, none if there is no list.
func (s Sinful) Addresses() []netip.AddrPort {
	list, err := s.addrs()
	if err != nil {
		return nil
	}
	return list
}

// addrs reads the list of addresses, in which '-' stands for ':'.
func (s Sinful) addrs() ([]netip.AddrPort, error) {
	text := s.Params[paramAddrs]
	if text == "" {
		return nil, nil
	}
	var list []netip.AddrPort
	for item := range strings.SplitSeq(text, "+") {
		i := strings.LastIndexByte(item, '-')
		if i < 0 {
			return nil, fmt.Errorf("the item %q of its list has no port", item)
		}
		a, err := netip.ParseAddrPort(strings.ReplaceAll(item[:i], "-", ":") + ":" + item[i+1:])
		if err != nil {
			return nil, fmt.Errorf("the item %q of its list is not an address", item)
		}
		list = append(list, a)
	}
	return list, nil
}

// rank orders the addresses of a daemon, the best highest.
func (n Network) rank(a netip.Addr) int {
	r := 2 * desirability(a)
	if a.Is4() && n.Prefer == IPv4 || a.Is6() && n.Prefer == IPv6 {
		r++
	}
	return r
}

// desirability ranks addresses (condor_utils/condor_sockaddr.cpp).
func desirability(a netip.Addr) int {
	a = a.Unmap()
	switch {
	case a.Is6() && a.IsLinkLocalUnicast():
		return 1
	case a.IsLoopback():
		return 2
	case a.IsLinkLocalUnicast():
		return 3
	case a.IsPrivate():
		return 4
	}
	return 5
}
