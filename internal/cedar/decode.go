package cedar

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// GetInt takes a signed integer.
func (s *Stream) GetInt() (int64, error) {
	v, err := s.GetUint()
	return int64(v), err
}

// GetUint takes an unsigned integer.
func (s *Stream) GetUint() (uint64, error) {
	in := &s.recv
	if len(in.plain) >= 8 {
		in.skipEOM = false
		v := binary.BigEndian.Uint64(in.plain)
		in.plain = in.plain[8:]
		return v, nil
	}
	var b [8]byte
	if err := s.readFull(b[:]); err != nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(b[:]), nil
}

// GetInt32 takes an integer that the protocol declares as a C int. A value
// that does not fit is an error.
func (s *Stream) GetInt32() (int, error) {
	v, err := s.GetInt()
	if err != nil {
		return 0, err
	}
	if v < math.MinInt32 || v > math.MaxInt32 {
		return 0, s.violation("%d in place of a 32 bit integer", v)
	}
	return int(v), nil
}

// GetBool takes a truth value.
func (s *Stream) GetBool() (bool, error) {
	v, err := s.GetUint()
	return v != 0, err
}

// GetDouble takes a real number.
func (s *Stream) GetDouble() (float64, error) {
	frac, err := s.GetInt32()
	if err != nil {
		return 0, err
	}
	exp, err := s.GetInt32()
	if err != nil {
		return 0, err
	}
	return math.Ldexp(float64(frac)/fracScale, exp), nil
}

// GetString takes a string; NULL is the empty string.
func (s *Stream) GetString() (string, error) {
	v, _, err := s.GetNullString()
	return v, err
}

// GetSecret takes a string that is a secret; see PutSecret.
func (s *Stream) GetSecret() (string, error) { return s.GetString() }

// GetNullString takes a string; false if the peer sent NULL.
func (s *Stream) GetNullString() (v string, present bool, err error) {
	b, err := s.getText()
	if err != nil {
		return "", false, err
	}
	if len(b) > 0 && b[0] == nullMark {
		return "", false, nil
	}
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return string(b), true, nil
}

// getText takes the bytes of a string, terminator included. They are valid
// until the next read.
func (s *Stream) getText() ([]byte, error) {
	if s.Encrypted() {
		n, err := s.GetInt()
		if err != nil {
			return nil, err
		}
		if n < 0 || n > maxString {
			return nil, s.violation("string of %d bytes, at most %d are allowed", n, maxString)
		}
		return s.view(int(n))
	}
	if err := s.more(); err != nil {
		return nil, err
	}
	in := &s.recv
	in.skipEOM = false
	if in.plain[0] == nullMark {
		return s.view(1)
	}
	if i := bytes.IndexByte(in.plain, 0); i >= 0 {
		return s.view(i + 1)
	}
	var all []byte
	for {
		i := bytes.IndexByte(in.plain, 0)
		n := i + 1
		if i < 0 {
			n = len(in.plain)
		}
		if len(all)+n > maxString {
			return nil, s.violation("string of more than %d bytes", maxString)
		}
		all = append(all, in.plain[:n]...)
		in.plain = in.plain[n:]
		if i >= 0 {
			return all, nil
		}
		if err := s.more(); err != nil {
			return nil, err
		}
	}
}

// view returns the next n bytes of the message, without a copy if they are in
// one packet. They are valid until the next read.
func (s *Stream) view(n int) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	if err := s.more(); err != nil {
		return nil, err
	}
	in := &s.recv
	if len(in.plain) >= n {
		in.skipEOM = false
		b := in.plain[:n:n]
		in.plain = in.plain[n:]
		return b, nil
	}
	return s.GetBytes(n)
}

// GetBytes takes exactly n bytes. Memory grows as they arrive, so a large n alone
// does not use any.
func (s *Stream) GetBytes(n int) ([]byte, error) {
	if n < 0 {
		return nil, fmt.Errorf("get %d bytes: %w", n, errNegative)
	}
	const step = 64 << 10
	b := make([]byte, min(n, step))
	if err := s.readFull(b); err != nil {
		return nil, err
	}
	for len(b) < n {
		at := len(b)
		b = append(b, make([]byte, min(n-at, max(at, step)))...)
		if err := s.readFull(b[at:]); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// ReadFull fills p from the current message.
func (s *Stream) ReadFull(p []byte) error { return s.readFull(p) }

// Read reads from the current message; io.EOF means that the message has no
// more bytes, and EndOfMessage is still to be called.
func (s *Stream) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	in := &s.recv
	in.skipEOM = false
	for len(in.plain) == 0 {
		if in.sealed == nil {
			if in.err == nil && in.inMessage && in.last {
				return 0, io.EOF
			}
			if err := s.nextPacket(); err != nil {
				return 0, noEOF(err)
			}
		}
		if in.sealed == nil {
			continue
		}
		if n := in.sealedSize(); n <= len(p) && n > 0 {
			_, err := s.unseal(p[:0:n])
			return n, err
		}
		b, err := s.unseal(nil)
		if err != nil {
			return 0, err
		}
		in.plain = b
	}
	n := copy(p, in.plain)
	in.plain = in.plain[n:]
	return n, nil
}

// ReadMessage reads one whole message of raw bytes into p, ends it, and
// returns its length. A message that does not fit is a violation.
func (s *Stream) ReadMessage(p []byte) (int, error) {
	n := 0
	for {
		if n == len(p) {
			break
		}
		m, err := s.Read(p[n:])
		n += m
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return n, err
		}
	}
	if err := s.EndOfMessage(); err != nil {
		if errors.Is(err, ErrLeftover) {
			err = s.violation("message of more than %d bytes", len(p))
		}
		return n, err
	}
	return n, nil
}

// noEOF replaces io.EOF at the end of the connection, since io.EOF means the end
// of a message.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %s", io.ErrUnexpectedEOF, err.Error()) // not %w: the result must not be io.EOF
	}
	return err
}
