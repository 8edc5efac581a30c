package cedar

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The byte strings of this file were made by an independent implementation
// that was run against HTCondor 25.14.

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// pair returns two connected streams over a socket pair.
func pair(t testing.TB) (*Stream, *Stream) {
	t.Helper()
	a, b := connPair(t)
	return NewStream(a), NewStream(b)
}

func connPair(t testing.TB) (net.Conn, net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// recorder is a stream whose output is kept instead of sent, and whose input
// is what it is given.
func recorder(input []byte) (*Stream, *bytes.Buffer) {
	out := &bytes.Buffer{}
	return NewStream(&fakeConn{in: bytes.NewReader(input), out: out}), out
}

const (
	vectorKey = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
	vectorP1  = "0100000056000000000000ea6a000000000000000455736553657373696f6e203d20225945532200536964203d202273312200436f6d6d616e64203d20363030313100526573756d65526573706f6e7365203d2074727565000000"
	vectorP2  = "0100000024000000000000000152657475726e436f6465203d2022415554484f52495a454422000000"
	vectorIV  = "ffffffff0405060708090a0b0c0d0e0f"
)

func TestScalarVectors(t *testing.T) {
	for _, c := range []struct {
		name string
		put  func(*Stream)
		want string
	}{
		{"int 1", func(s *Stream) { s.PutInt(1) }, "0000000000000001"},
		{"int -63", func(s *Stream) { s.PutInt(-63) }, "ffffffffffffffc1"},
		{"double 1", func(s *Stream) { s.PutDouble(1) }, "000000003fffffff 0000000000000001"},
		{"double 0.5", func(s *Stream) { s.PutDouble(0.5) }, "000000003fffffff 0000000000000000"},
		{"double -1", func(s *Stream) { s.PutDouble(-1) }, "ffffffffc0000001 0000000000000001"},
		{"double 3.25", func(s *Stream) { s.PutDouble(3.25) }, "0000000067ffffff 0000000000000002"},
		{"double 0.25", func(s *Stream) { s.PutDouble(0.25) }, "000000003fffffff ffffffffffffffff"},
		{"double 1e-5", func(s *Stream) { s.PutDouble(1e-5) }, "0000000053e2d622 fffffffffffffff0"},
		{"double 0", func(s *Stream) { s.PutDouble(0) }, "0000000000000000 0000000000000000"},
		{"string", func(s *Stream) { s.PutString("hi") }, "686900"},
		{"empty string", func(s *Stream) { s.PutString("") }, "00"},
		{"null string", func(s *Stream) { s.PutNullString("", false) }, "ad"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, out := recorder(nil)
			c.put(s)
			if err := s.EndMessage(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(unhex(t, c.want), out.Bytes()[headerSize:]); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStringVectorsEncrypted(t *testing.T) {
	for _, c := range []struct {
		name string
		put  func(*Stream)
		want string
	}{
		{"string", func(s *Stream) { s.PutString("hi") }, "0000000000000003 686900"},
		{"empty string", func(s *Stream) { s.PutString("") }, "0000000000000001 00"},
		{"null string", func(s *Stream) { s.PutNullString("", false) }, "0000000000000001 ad"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := pair(t)
			encrypt(t, a, b)
			c.put(a)
			if err := a.EndMessage(); err != nil {
				t.Fatal(err)
			}
			want := unhex(t, c.want)
			got, err := b.GetBytes(len(want))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if err := b.EndOfMessage(); err != nil {
				t.Error(err)
			}
		})
	}
}

func encrypt(t testing.TB, streams ...*Stream) {
	t.Helper()
	key, err := deriveKey(vectorKey)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range streams {
		if err := s.setKey(key); err != nil {
			t.Fatal(err)
		}
	}
}

func TestKeyVector(t *testing.T) {
	key, err := deriveKey(vectorKey)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(unhex(t, "cba26c39371e9ca8147e8bf6c813a5f4c4432c99e8d2794c0e58c7e786d554eb"), key); diff != "" {
		t.Error(diff)
	}
}

// TestStreamVectors replays the client's side of a resumed session.
func TestStreamVectors(t *testing.T) {
	s, out := recorder(unhex(t, vectorP2))
	s.PutInt(60010)
	s.PutInt(4)
	for _, line := range []string{`UseSession = "YES"`, `Sid = "s1"`, "Command = 60011", "ResumeResponse = true", "", ""} {
		s.PutString(line)
	}
	if err := s.EndMessage(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(unhex(t, vectorP1), out.Bytes()); diff != "" {
		t.Fatal(diff)
	}
	if got := sha256.Sum256(out.Bytes()); got != s.send.digest() {
		t.Error("digest of what was sent is not that of the packet")
	}
	ad, err := s.GetAd()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.EndOfMessage(); err != nil {
		t.Fatal(err)
	}
	if got, _ := ad.GetString("ReturnCode"); got != "AUTHORIZED" {
		t.Errorf("ReturnCode is %q", got)
	}
	out.Reset()
	encrypt(t, s)
	copy(s.send.iv[:], unhex(t, vectorIV))
	s.PutInt(1)
	if err := s.EndMessage(); err != nil {
		t.Fatal(err)
	}
	s.PutString("hi")
	s.PutBytes(nil)
	if err := s.EndMessage(); err != nil {
		t.Fatal(err)
	}
	want := unhex(t, "0100000028 ffffffff0405060708090a0b0c0d0e0f 4f1e2f29f33772e5 274268b7f85fae14f644f249bdb539b0"+
		"010000001b 06e2d52c52e0e0e3d6e9d4 d87ad0be80d1e7f4b31f1d5b267755b7")
	if diff := cmp.Diff(want, out.Bytes()); diff != "" {
		t.Error(diff)
	}
}

// TestFirstPacketVectors opens the first packets of a client, with and
// without an answer of the server before it.
func TestFirstPacketVectors(t *testing.T) {
	for _, c := range []struct {
		name, packets string
		answer        bool
	}{
		{"answered", "0100000028 ffffffff0405060708090a0b0c0d0e0f 4f1e2f29f33772e5 274268b7f85fae14f644f249bdb539b0" +
			"010000001b 06e2d52c52e0e0e3d6e9d4 d87ad0be80d1e7f4b31f1d5b267755b7", true},
		{"unanswered", "0100000028 ffffffff0405060708090a0b0c0d0e0f 4f1e2f29f33772e5 4fd7c7966f706c5e66329267d25cdcb9", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := recorder(unhex(t, vectorP1+c.packets))
			if cmd, err := s.GetInt(); cmd != 60010 || err != nil {
				t.Fatal(cmd, err)
			}
			if _, err := s.GetAd(); err != nil {
				t.Fatal(err)
			}
			if err := s.EndOfMessage(); err != nil {
				t.Fatal(err)
			}
			if c.answer {
				s.PutInt(1)
				s.PutString(`ReturnCode = "AUTHORIZED"`)
				s.PutString("")
				s.PutString("")
				if err := s.EndMessage(); err != nil {
					t.Fatal(err)
				}
			}
			encrypt(t, s)
			if v, err := s.GetInt(); v != 1 || err != nil {
				t.Fatal(v, err)
			}
			if err := s.EndOfMessage(); err != nil {
				t.Fatal(err)
			}
			if !c.answer {
				return
			}
			if v, err := s.GetString(); v != "hi" || err != nil {
				t.Fatal(v, err)
			}
			if err := s.EndOfMessage(); err != nil {
				t.Fatal(err)
			}
		})
	}
}
