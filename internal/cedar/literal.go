package cedar

import (
	"strconv"
	"strings"
)

// The ads of the security handshake, and the exported policy of a session,
// hold one literal per attribute (daemon_command.cpp reads them with a parser
// that knows nothing else). They are read here before the peer has proved
// anything, so they get a reader of their own that cannot be led astray.

// literals are attributes by their lower-case names. Values that are no
// literals are left out.
type literals map[string]any

// add takes one line Name = literal; it reports whether the line had a name.
func (m literals) add(line string) bool {
	name, text, found := strings.Cut(line, "=")
	name = strings.ToLower(strings.TrimSpace(name))
	if !found || name == "" {
		return false
	}
	delete(m, name)
	if v, ok := parseLiteral(strings.TrimSpace(text)); ok {
		m[name] = v
	}
	return true
}

func parseLiteral(text string) (any, bool) {
	switch {
	case text == "":
		return nil, false
	case text[0] == '"':
		if len(text) < 2 || text[len(text)-1] != '"' {
			return nil, false
		}
		return strings.ReplaceAll(text[1:len(text)-1], `\"`, `"`), true
	case strings.EqualFold(text, "true"):
		return true, true
	case strings.EqualFold(text, "false"):
		return false, true
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n, true
	}
	return nil, false
}

func (m literals) str(name string) string {
	s, _ := m[strings.ToLower(name)].(string)
	return s
}

func (m literals) boolean(name string) bool {
	switch v := m[strings.ToLower(name)].(type) {
	case bool:
		return v
	case int64:
		return v != 0
	}
	return false
}

func (m literals) integer(name string) (int64, bool) {
	v, ok := m[strings.ToLower(name)].(int64)
	return v, ok
}

const (
	maxAuthLines = 100     // as many as HTCondor accepts
	maxAuthBytes = 1 << 16 // of a whole message of the handshake
)

// putLiterals puts lines as an ad.
func (s *Stream) putLiterals(lines []string) {
	s.PutInt(int64(len(lines)))
	for _, l := range lines {
		s.PutString(l)
	}
	s.PutString("")
	s.PutString("")
}

// getLiterals takes an ad of the handshake.
func (s *Stream) getLiterals() (literals, error) {
	n, err := s.GetInt()
	if err != nil {
		return nil, err
	}
	if n < 0 || n > maxAuthLines {
		return nil, s.violation("security ad of %d attributes, at most %d are allowed", n, maxAuthLines)
	}
	m := literals{}
	for range n {
		line, err := s.GetString()
		if err != nil {
			return nil, err
		}
		if line == zkm {
			if line, err = s.GetString(); err != nil {
				return nil, err
			}
		}
		if !m.add(line) {
			return nil, s.violation("security ad with a line that is no attribute")
		}
	}
	for range 2 {
		if _, err := s.GetString(); err != nil {
			return nil, err
		}
	}
	return m, nil
}
