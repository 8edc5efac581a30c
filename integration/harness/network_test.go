package harness

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestEstablished(t *testing.T) {
	const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2580 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 0100007F:2580 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 2 1 0 20 4 30 10 -1
   2: 0100007F:9C40 0100007F:2580 01 00000000:00000000 00:00000000 00000000     0        0 3 1 0 20 4 30 10 -1
   3: 0100007F:9C41 0100007F:2581 01 00000000:00000000 00:00000000 00000000     0        0 4 1 0 20 4 30 10 -1
   4: 0100007F:9C42 0100007F:2580 06 00000000:00000000 00:00000000 00000000     0        0 0 3 0
`
	got, err := established([]byte(table))
	if err != nil {
		t.Fatal(err)
	}
	local := netip.MustParseAddr("127.0.0.1")
	want := []Connection{{0x2580, 0x9C40, 2, local, local}, {0x9C40, 0x2580, 3, local, local}, {0x9C41, 0x2581, 4, local, local}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(Connection{}), cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	const rest = " 0:0 0:0 0 0 0"
	for _, bad := range []string{"0: X 0100007F:1 01" + rest + " 1", "0: 0100007F:1 0100:1 01" + rest + " 1", "0: 0100007F:1 0100007F:XYZ 01" + rest + " 1", "0: 0100007F:1 0100007F:1 01" + rest + " x"} {
		if found, err := established([]byte(bad)); err == nil {
			t.Errorf("%q was read as %v", bad, found)
		}
	}
}

// TestBreakConnections breaks a connection of this machine under two ends that
// wait for each other, in both ways.
func TestBreakConnections(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root may break connections")
	}
	t.Run("by the kernel", func(t *testing.T) { breakOne(t, BreakOff) })
	t.Run("by a descriptor", func(t *testing.T) {
		breakOne(t, func(_ Process, port uint16) (int, error) {
			table, err := os.ReadFile("/proc/net/tcp")
			if err != nil {
				return 0, err
			}
			all, err := established(table)
			if err != nil {
				return 0, err
			}
			for _, c := range all {
				if c.RemotePort == port {
					return 1, reset(c)
				}
			}
			return 0, nil
		})
	})
	t.Run("at the end that listened, twice", func(t *testing.T) {
		breakOne(t, func(p Process, port uint16) (int, error) {
			all, err := connections(p.PID)
			if err != nil {
				return 0, err
			}
			all = slices.DeleteFunc(all, func(c Connection) bool { return c.LocalPort != port })
			return breakAll(append(all, all...))
		})
	})
	if err := reset(Connection{Inode: 1 << 60}); !errors.Is(err, unix.ENOENT) {
		t.Errorf("a connection that nobody has: %v", err)
	}
}

func breakOne(t *testing.T, with func(Process, uint16) (int, error)) {
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
	defer a.Close()
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	own, err := ReadProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	n, err := with(own, uint16(l.Addr().(*net.TCPAddr).Port))
	if err != nil || n != 1 {
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
