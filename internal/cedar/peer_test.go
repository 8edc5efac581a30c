package cedar

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// peerRole, in the environment, makes the test binary the other end of a
// connection, in a process of its own: it adopts descriptor 3, as a starter
// adopts what the startd hands down.
const (
	peerRole   = "CEDAR_TEST_PEER"
	peerSocket = "CEDAR_TEST_SOCKET"
	peerBytes  = "CEDAR_TEST_BYTES"
)

func TestMain(m *testing.M) {
	role := os.Getenv(peerRole)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := runPeer(role); err != nil {
		fmt.Fprintln(os.Stderr, "peer process:", err)
		os.Exit(1)
	}
}

func runPeer(role string) error {
	s, err := Adopt(os.Getenv(peerSocket))
	if err != nil {
		return err
	}
	defer s.Close()
	size, err := strconv.ParseInt(os.Getenv(peerBytes), 10, 64)
	if err != nil {
		return err
	}
	switch role {
	case "send":
		err = s.PutFile(zeros{}, size)
	case "send like HTCondor":
		err = putLikeHTCondor(s, size)
	case "messages":
		for i := int64(0); i < size && err == nil; i++ {
			s.PutInt(i)
			err = s.EndMessage()
		}
	case "receive":
		_, err = s.GetFile(io.Discard, -1)
	case "echo":
		return echo(s)
	default:
		err = errors.New("unknown role")
	}
	if err != nil {
		return err
	}
	// Stay until the other side has everything.
	if _, err := s.Conn().Read(make([]byte, 1)); err != io.EOF {
		return fmt.Errorf("the connection did not end: %w", err)
	}
	return nil
}

// echo sends every string back until the connection ends.
func echo(s *Stream) error {
	for {
		v, err := s.GetString()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := s.EndOfMessage(); err != nil {
			return err
		}
		s.PutString(v)
		if err := s.EndMessage(); err != nil {
			return err
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// putLikeHTCondor sends a file in packets of 4 KiB, one write each.
func putLikeHTCondor(s *Stream, size int64) error {
	s.SetPacketSize(4096 - headerSize)
	const piece = 256 << 10
	s.PutInt(size)
	s.PutInt(piece)
	if err := s.EndMessage(); err != nil {
		return err
	}
	b := make([]byte, 4096-headerSize)
	for size > 0 {
		left := min(piece, size)
		size -= left
		for left > 0 {
			n := min(left, int64(len(b)))
			s.PutBytes(b[:n])
			left -= n
			s.endPacket(left == 0)
			if err := s.Flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// startPeer hands the stream down to a peer process and returns a function
// that waits for its end.
func startPeer(t testing.TB, role string, size int64, handed *Stream) func() {
	t.Helper()
	text, err := handed.Serialize(3)
	if err != nil {
		t.Fatal(err)
	}
	f, err := handed.Conn().(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), peerRole+"="+role, peerSocket+"="+text, peerBytes+"="+strconv.FormatInt(size, 10))
	cmd.ExtraFiles = []*os.File{f}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	f.Close()
	handed.Close()
	return func() {
		if err := cmd.Wait(); err != nil {
			t.Errorf("peer process: %v", err)
		}
	}
}
