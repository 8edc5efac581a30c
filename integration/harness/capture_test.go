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
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	c, err := NewCapture(os.Getpid(), uint16(listener.Addr().(*net.TCPAddr).Port))
	if errors.Is(err, unix.EPERM) {
		t.Skip("only root may listen to others' packets")
	}
	if err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	unheard, err := net.Dial("tcp4", other.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer unheard.Close()
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
	if len(streams) != 2 {
		t.Errorf("%d streams, want the two directions of one connection", len(streams))
	}
	for _, want := range [][]byte{sent, []byte("the answer")} {
		if !slices.ContainsFunc(streams, func(s []byte) bool { return bytes.Equal(s, want) }) {
			t.Errorf("%d bytes were not heard in one of %d streams", len(want), len(streams))
		}
	}
}

// TestStreamInAnotherOrder: packets come before their turn, twice, and across the end of the
// sequence numbers.
func TestStreamInAnotherOrder(t *testing.T) {
	first := uint32(1<<32 - 3)
	for name, order := range map[string][][2]uint32{ // from and to
		"in order":         {{0, 2}, {2, 5}, {5, 9}},
		"turned round":     {{5, 9}, {2, 5}, {0, 2}},
		"twice":            {{0, 2}, {0, 2}, {5, 9}, {5, 9}, {2, 5}, {2, 5}},
		"overlapping":      {{3, 9}, {0, 4}},
		"longer and again": {{2, 3}, {2, 9}, {0, 2}},
	} {
		s := &stream{first: first, next: first, early: map[uint32][]byte{}}
		for _, part := range order {
			s.add(first+part[0], []byte("123456789")[part[0]:part[1]])
		}
		if string(s.data) != "123456789" || len(s.early) > 0 {
			t.Errorf("%s: %q, %d early", name, s.data, len(s.early))
		}
	}
	s := &stream{first: first, next: first, early: map[uint32][]byte{}}
	s.add(first, []byte("12"))
	s.add(first+3, []byte("4"))
	if string(s.data) != "12" || len(s.early) != 1 {
		t.Errorf("with a gap: %q, %d early", s.data, len(s.early))
	}
}
