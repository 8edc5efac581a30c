package harness

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// TestCapture listens to a connection of the test's own.
func TestCapture(t *testing.T) {
	c, err := NewCapture(os.Getpid())
	if errors.Is(err, unix.EPERM) {
		t.Skip("only root may listen to others' packets")
	}
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	sent := bytes.Repeat([]byte("what is sent\n"), 1<<17)
	answered := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			_, err = io.Copy(io.Discard, conn)
			_, _ = conn.Write([]byte("the answer"))
			_ = conn.Close()
		}
		answered <- err
	}()
	conn, err := net.Dial("tcp4", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(sent); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(conn); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
	streams, err := c.Streams()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]byte{sent, []byte("the answer")} {
		if !slices.ContainsFunc(streams, func(s []byte) bool { return bytes.Equal(s, want) }) {
			t.Errorf("%d bytes were not heard in one of %d streams", len(want), len(streams))
		}
	}
}

func TestStreamPieces(t *testing.T) {
	for name, tt := range map[string]struct {
		pieces map[uint32]string // in the order of their numbers
		want   string
	}{
		"in order":      {map[uint32]string{10: "abc", 13: "def"}, "abcdef"},
		"sent again":    {map[uint32]string{10: "abc", 11: "bcd", 12: "c"}, "abcd"},
		"one is missed": {map[uint32]string{10: "abc", 14: "e", 15: "f"}, "abc"},
	} {
		t.Run(name, func(t *testing.T) {
			s := stream{next: 10}
			for at := uint32(10); at < 20; at++ {
				if piece, ok := tt.pieces[at]; ok && !s.missed {
					s.add(at, []byte(piece))
				}
			}
			if string(s.data) != tt.want {
				t.Errorf("%q, want %q", s.data, tt.want)
			}
		})
	}
	s := stream{next: 0xffffffff}
	s.add(0xffffffff, []byte("ab")) // numbers begin anew
	s.add(1, []byte("c"))
	if string(s.data) != "abc" {
		t.Errorf("%q", s.data)
	}
}
