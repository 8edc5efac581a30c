package cedar

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"testing"
)

// header makes a packet header.
func header(end byte, length uint32) []byte {
	return binary.BigEndian.AppendUint32([]byte{end}, length)
}

func TestHostilePackets(t *testing.T) {
	for _, c := range []struct {
		name    string
		input   []byte
		encrypt bool
	}{
		{"empty packet", header(1, 0), false},
		{"flag below range", header(0xff, 8), false},
		{"flag above range", header(11, 8), false},
		{"too long", header(1, maxPacket+1), false},
		{"longest number", header(1, 0xffffffff), false},
		{"http", []byte("GET / HTTP/1.1\r\n\r\n"), false},
		{"no room for a tag", append(header(1, 15), make([]byte, 15)...), true},
		{"no room for an IV", append(header(1, 31), make([]byte, 31)...), true},
		{"wrong tag", append(header(1, 40), make([]byte, 40)...), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := recorder(c.input)
			if c.encrypt {
				encrypt(t, s)
			}
			_, err := s.GetInt()
			var violation *ProtocolError
			if !errors.As(err, &violation) && !errors.Is(err, ErrDecrypt) {
				t.Errorf("got %v", err)
			}
			if _, again := s.GetInt(); again == nil {
				t.Error("the stream goes on after a violation")
			}
			if cap(s.recv.buf) > 2*firstBuffer {
				t.Errorf("a claimed length took %d bytes of memory", cap(s.recv.buf))
			}
		})
	}
}

func TestHostileValues(t *testing.T) {
	packet := func(payload ...byte) []byte { return append(header(1, uint32(len(payload))), payload...) }
	huge := packet(0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff)
	t.Run("long claimed string", func(t *testing.T) {
		a, b := pair(t)
		encrypt(t, a, b)
		a.PutInt(math.MaxInt64)
		must(t, a.EndMessage())
		var violation *ProtocolError
		if _, err := b.GetString(); !errors.As(err, &violation) {
			t.Error(err)
		}
	})
	t.Run("string that ends early", func(t *testing.T) {
		a, b := pair(t)
		encrypt(t, a, b)
		a.PutInt(maxString)
		must(t, a.EndMessage())
		if _, err := b.GetString(); !errors.Is(err, ErrMessageEnd) {
			t.Error(err)
		}
	})
	t.Run("count of attributes", func(t *testing.T) {
		s, _ := recorder(huge)
		var violation *ProtocolError
		if _, err := s.GetAd(); !errors.As(err, &violation) {
			t.Error(err)
		}
	})
	t.Run("unterminated string", func(t *testing.T) {
		s, _ := recorder(packet('a', 'b'))
		if _, err := s.GetString(); !errors.Is(err, ErrMessageEnd) {
			t.Error(err)
		}
	})
	t.Run("integer beyond 32 bits", func(t *testing.T) {
		s, _ := recorder(huge)
		var violation *ProtocolError
		if _, err := s.GetInt32(); !errors.As(err, &violation) {
			t.Error(err)
		}
	})
	t.Run("message limit", func(t *testing.T) {
		s, _ := recorder(append(append(header(0, 60), make([]byte, 60)...), header(1, 60)...))
		s.SetMessageLimit(100)
		var violation *ProtocolError
		if _, err := s.GetBytes(100); !errors.As(err, &violation) {
			t.Error(err)
		}
	})
}

func TestEndOfConnection(t *testing.T) {
	for _, c := range []struct {
		name  string
		input []byte
		want  error
	}{
		{"between messages", nil, io.EOF},
		{"in a header", header(1, 8)[:3], io.ErrUnexpectedEOF},
		{"behind a header", header(1, 8), io.ErrUnexpectedEOF},
		{"in a packet", append(header(1, 8), 1), io.ErrUnexpectedEOF},
		{"between packets", append(header(0, 1), 1), io.ErrUnexpectedEOF},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := recorder(c.input)
			if _, err := s.GetInt(); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestCounters(t *testing.T) {
	a, b := pair(t)
	encrypt(t, a, b)
	// The base IV's first bytes overflow while packets are counted.
	copy(a.send.iv[:], []byte{0xff, 0xff, 0xff, 0xfe})
	for i := range 5 {
		a.PutInt(int64(i))
		must(t, a.EndMessage())
		wantInt(t, b, int64(i))
		must(t, b.EndOfMessage())
	}
	// Neither side reuses a number.
	a.send.counter, b.recv.counter = math.MaxUint32, math.MaxUint32
	a.PutInt(1)
	if err := a.EndMessage(); !errors.Is(err, ErrCounterExhausted) {
		t.Errorf("sending: %v", err)
	}
	_, _ = a.conn.Write(append(header(1, 24), make([]byte, 24)...))
	if _, err := b.GetInt(); !errors.Is(err, ErrCounterExhausted) {
		t.Errorf("receiving: %v", err)
	}
}

func TestReplayedPacket(t *testing.T) {
	a, out := recorder(nil)
	encrypt(t, a)
	a.PutInt(1)
	must(t, a.EndMessage())
	first := out.Len()
	a.PutInt(2)
	must(t, a.EndMessage())
	second := out.Bytes()[first:]
	b, _ := recorder(append(out.Bytes(), second...))
	encrypt(t, b)
	for want := range int64(2) {
		wantInt(t, b, want+1)
		must(t, b.EndOfMessage())
	}
	if _, err := b.GetInt(); !errors.Is(err, ErrDecrypt) {
		t.Errorf("a replayed packet: %v", err)
	}
}
