package cedar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
)

const (
	// nullMark is the single byte that stands for a NULL string.
	nullMark = 0xAD
	// maxString is the longest string, terminator included, that a peer
	// accepts on an encrypted stream (stream.cpp:get_string_ptr).
	maxString = 10_000_000
	// fracScale scales the mantissa of a double.
	fracScale = 2147483647.0
)

// PutInt puts a signed integer. Every integral type, bool and time of the
// protocol is sent as eight bytes (stream.cpp:put).
func (s *Stream) PutInt(v int64) { s.PutUint(uint64(v)) }

// PutUint puts an unsigned integer, such as a size.
func (s *Stream) PutUint(v uint64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], v)
	s.put(b[:])
}

// PutBool puts a truth value as 1 or 0.
func (s *Stream) PutBool(v bool) {
	if v {
		s.PutUint(1)
	} else {
		s.PutUint(0)
	}
}

// PutDouble puts a real number; 31 bits of its mantissa survive. Infinities
// and NaN have no representation and are an error.
func (s *Stream) PutDouble(v float64) {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		s.fail(fmt.Errorf("put %v: the protocol has no form for it", v))
		return
	}
	frac, exp := math.Frexp(v)
	s.PutInt(int64(int32(frac * fracScale)))
	s.PutInt(int64(exp))
}

// PutString puts a string. A string with a NUL byte, or one that is longer
// than peers accept, is an error.
func (s *Stream) PutString(v string) {
	if i := strings.IndexByte(v, 0); i >= 0 {
		s.fail(fmt.Errorf("put a string of %d bytes: it has a NUL byte at %d", len(v), i))
		return
	}
	if len(v) >= maxString {
		s.fail(fmt.Errorf("put a string of %d bytes: peers accept at most %d", len(v), maxString-1))
		return
	}
	if s.Encrypted() {
		s.PutInt(int64(len(v) + 1))
	}
	s.putText(v)
	s.put([]byte{0})
}

// PutSecret puts a string that is a secret. With AES, and without any
// encryption, that is an ordinary string; whether a secret may go over a
// plaintext stream is for the caller to decide.
func (s *Stream) PutSecret(v string) { s.PutString(v) }

// PutNullString puts a string that may be absent (stream.cpp:put_nullstr).
func (s *Stream) PutNullString(v string, present bool) {
	if present {
		s.PutString(v)
		return
	}
	if s.Encrypted() {
		s.PutInt(1)
	}
	s.put([]byte{nullMark})
}

// PutBytes puts bytes without a length.
func (s *Stream) PutBytes(b []byte) { s.put(b) }

// Write puts bytes without a length; it implements io.Writer for the current
// message.
func (s *Stream) Write(b []byte) (int, error) {
	s.put(b)
	if s.send.err != nil {
		return 0, s.send.err
	}
	return len(b), nil
}

var errNegative = errors.New("negative length")
