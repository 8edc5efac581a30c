package faults

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestEstablished(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2580 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 0100007F:2580 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 2 1 0 20 4 30 10 -1
   2: 0100007F:9C40 0100007F:2580 01 00000000:00000000 00:00000000 00000000     0        0 3 1 0 20 4 30 10 -1
   3: 0100007F:9C41 0100007F:2581 01 00000000:00000000 00:00000000 00000000     0        0 4 1 0 20 4 30 10 -1
   4: 0100007F:9C42 0100007F:2580 06 00000000:00000000 00:00000000 00000000     0        0 0 3 0
`
	got, err := established([]byte(table), 0x2580)
	if err != nil {
		t.Fatal(err)
	}
	local := [4]byte{127, 0, 0, 1}
	want := []connection{{local, local, 0x9C40, 0x2580}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(connection{})); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"0: X 0100007F:1 01", "0: 0100007F:1 0100:1 01", "0: 0100007F:1 0100007F:XYZ 01"} {
		if found, err := established([]byte(bad), 1); err == nil {
			t.Errorf("%q was read as %v", bad, found)
		}
	}
}

// TestBreakConnections breaks a connection of this machine under two ends that
// wait for each other.
func TestBreakConnections(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root may break connections")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	n, err := breakConnections(uint16(l.Addr().(*net.TCPAddr).Port))
	if err != nil || n == 0 {
		t.Fatalf("%d connections broken, %v", n, err)
	}
	for _, end := range []net.Conn{a, b} {
		_ = end.SetReadDeadline(time.Now().Add(30 * time.Second))
		if _, err := end.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("an end reads %v", err)
		}
	}
	again, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatalf("the next connection: %v", err)
	}
	again.Close()
}
