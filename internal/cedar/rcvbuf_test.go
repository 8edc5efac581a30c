package cedar

import (
	"bytes"
	"math"
	"math/rand/v2"
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// pieces is a connection that sends little at once, as HTCondor does.
type pieces struct {
	net.Conn
	size int
}

func (p pieces) Write(b []byte) (int, error) {
	sent := 0
	for sent < len(b) {
		n, err := p.Conn.Write(b[sent:min(len(b), sent+p.size)])
		sent += n
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// receiveBuffer returns the size of a connection's receive buffer.
func receiveBuffer(t *testing.T, s *Stream) int {
	t.Helper()
	raw, err := s.Conn().(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var n int
	var failed error
	if err := raw.Control(func(fd uintptr) { n, failed = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUF) }); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
	return n
}

// TestWindowOfNearPeer: a large file from the same machine gets a small receive buffer, and
// arrives unchanged in whatever pieces it is sent; little files leave the buffer to the kernel.
func TestWindowOfNearPeer(t *testing.T) {
	for _, c := range []struct {
		name    string
		size    int
		pieces  int
		limited bool
	}{
		{"large", 5 << 20, 4112, true},
		{"large in little pieces", nearFile, 100, true},
		{"small", nearFile - 1, 4112, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			a, b := connPair(t)
			tx, rx := NewStream(pieces{a, c.pieces}), NewStream(b)
			encrypt(t, tx, rx)
			content := make([]byte, c.size)
			_, _ = rand.NewChaCha8([32]byte{}).Read(content)
			sent := make(chan error, 1)
			go func() {
				err := tx.PutFile(bytes.NewReader(content), int64(len(content)))
				if err == nil {
					err = tx.EndMessage()
				}
				tx.PutInt(7)
				if err == nil {
					err = tx.EndMessage()
				}
				sent <- err
			}()
			var got bytes.Buffer
			if _, err := rx.GetFile(&got, -1); err != nil {
				t.Fatal(err)
			}
			if err := rx.EndOfMessage(); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), content) {
				t.Error("the contents are not what was sent")
			}
			if v, err := rx.GetInt(); v != 7 || err != nil {
				t.Errorf("behind the file: %d, %v", v, err)
			}
			if err := <-sent; err != nil {
				t.Fatal(err)
			}
			if size := receiveBuffer(t, rx); (size == 2*nearBuffer) != c.limited {
				t.Errorf("the receive buffer has %d bytes, limited: %t", size, c.limited)
			}
		})
	}
}

// TestNear: a peer of which nothing was measured is not near.
func TestNear(t *testing.T) {
	for rtt, want := range map[uint32]bool{15: true, nearTime: true, nearTime + 1: false, 20_000: false, math.MaxUint32: false} {
		if got := near(&unix.TCPInfo{Min_rtt: rtt}); got != want {
			t.Errorf("%d µs: near %t", rtt, got)
		}
	}
}
