package cedar

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"podstarter/classads"
)

const (
	// zkm is the line that announces that the next string is the real line,
	// sent as a secret (classad_oldnew.cpp: SECRET_MARKER).
	zkm = "ZKM"
	// maxAdLines is the largest number of attributes that peers accept
	// (classad_oldnew.cpp:getClassAd).
	maxAdLines = 1_000_000
	// maxAdBytes is the largest size of an ad's text. HTCondor has no such limit;
	// the largest ads in practice (long environments, lists of files) are far
	// smaller.
	maxAdBytes = 32 << 20
	// maxAdNodes is the largest number of nodes in all expressions of an ad. An
	// attribute has at least one node, which takes a hundred bytes of memory, while
	// its text may have three.
	maxAdNodes = classads.DefaultMaxNodes
	// unknownType is what old peers send in place of a missing type.
	unknownType = "(unknown type)"
)

// AdOptions change what PutAdWith sends.
type AdOptions struct {
	OmitPrivate bool      // leave out secrets such as ClaimId
	OmitTypes   bool      // leave out the two strings behind the attributes
	ServerTime  time.Time // unless zero, add the attribute ServerTime
}

// PutAd puts an ad with everything in it, secrets included.
func (s *Stream) PutAd(ad *classads.Ad) { s.PutAdWith(ad, AdOptions{}) }

// PutAdWith puts an ad: the number of attributes, a line for each, and two
// strings that once carried the types and are empty now (classad_oldnew.cpp:
// _putClassAd).
func (s *Stream) PutAdWith(ad *classads.Ad, opt AdOptions) {
	n := 0
	for name := range ad.All() {
		if !opt.OmitPrivate || !classads.IsPrivate(name) {
			n++
		}
	}
	if !opt.ServerTime.IsZero() {
		n++
	}
	s.PutInt(int64(n))
	var line []byte
	for name, e := range ad.All() {
		private := classads.IsPrivate(name)
		if private && opt.OmitPrivate {
			continue
		}
		if private {
			s.PutString(zkm)
		}
		line = classads.AppendOldLine(line[:0], name, e)
		s.putLine(line)
	}
	if !opt.ServerTime.IsZero() {
		s.PutString(fmt.Sprintf("ServerTime = %d", opt.ServerTime.Unix()))
	}
	if !opt.OmitTypes {
		s.PutString("")
		s.PutString("")
	}
}

// GetAd takes an ad. If an attribute cannot be parsed, the error is an *AdError.
// GetAd then still takes the whole ad from the stream, so the stream stays
// usable.
func (s *Stream) GetAd() (*classads.Ad, error) {
	n, err := s.GetInt()
	if err != nil {
		return nil, err
	}
	if n < 0 || n > maxAdLines {
		return nil, s.violation("ad of %d attributes, at most %d are allowed", n, maxAdLines)
	}
	ad := classads.NewAd()
	var bad error
	size, left := 0, maxAdNodes
	parser := classads.Parser{Left: &left}
	for i := range n {
		line, err := s.GetString()
		if err == nil && line == zkm {
			line, err = s.GetString()
		}
		if err != nil {
			return nil, err
		}
		if size += len(line); size > maxAdBytes {
			return nil, s.violation("ad of more than %d bytes", maxAdBytes)
		}
		name, e, err := parser.OldLine(line)
		if left == 0 {
			return nil, s.violation("ad of %d or more nodes (attributes, and the parts of their values)", maxAdNodes)
		}
		if err != nil {
			if bad == nil {
				bad = &AdError{Line: int(i) + 1, Name: attributeName(line), err: err}
			}
			continue
		}
		ad.Insert(name, e)
	}
	for _, name := range []string{"MyType", "TargetType"} {
		v, err := s.GetString()
		if err != nil {
			return nil, err
		}
		if v != "" && v != unknownType && !ad.Has(name) {
			ad.SetString(name, v)
		}
	}
	if bad != nil {
		return nil, bad
	}
	return ad, nil
}

// AdError says that an attribute of a received ad is not an expression. It
// does not show the value, which may be a secret.
type AdError struct {
	Line int    // counted from 1
	Name string // of the attribute, as far as it can be told
	err  error
}

func (e *AdError) Error() string {
	return fmt.Sprintf("ad with an attribute %q (line %d) that cannot be parsed", e.Name, e.Line)
}

// Unwrap returns the parser's error, which may quote the value.
func (e *AdError) Unwrap() error { return e.err }

// attributeName returns the text before the first '=', for a message.
func attributeName(line string) string {
	name, _, found := strings.Cut(line, "=")
	name = strings.TrimSpace(name)
	if !found || len(name) > 80 {
		return ""
	}
	return name
}

// putLine puts a line of an ad. It takes bytes to avoid a copy.
func (s *Stream) putLine(line []byte) {
	if bytes.IndexByte(line, 0) >= 0 {
		s.fail(fmt.Errorf("put ad: attribute %s has a NUL byte", attributeName(string(line))))
		return
	}
	if len(line) >= maxString {
		s.fail(fmt.Errorf("put ad: attribute %s of %d bytes: peers accept at most %d", attributeName(string(line)), len(line), maxString-1))
		return
	}
	if s.Encrypted() {
		s.PutInt(int64(len(line) + 1))
	}
	s.put(line)
	s.put([]byte{0})
}
