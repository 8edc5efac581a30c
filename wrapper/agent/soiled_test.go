package agent

import (
	"bufio"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/payload"
)

// TestSoiledContainerIsNotEmpty: the wrapper remembers what it could not remove after an
// earlier connection, and answers the next sweep with it.
func TestSoiledContainerIsNotEmpty(t *testing.T) {
	for _, left := range []string{"", "shared memory of user 7"} {
		fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		ends := make([]net.Conn, len(fds))
		for i, fd := range fds {
			f := os.NewFile(uintptr(fd), "socketpair")
			if ends[i], err = net.FileConn(f); err != nil {
				t.Fatal(err)
			}
			f.Close()
			t.Cleanup(func() { ends[i].Close() })
		}
		a := &agent{log: logger{os.Stderr}, soiled: left, conn: &connection{sock: ends[0].(*net.UnixConn)}}
		a.request([]byte(`{"id":1,"op":"sweep"}`))
		line, err := bufio.NewReader(ends[1]).ReadBytes('\n')
		if err != nil {
			t.Fatal(err)
		}
		m, err := payload.DecodeMessage(line)
		if err != nil {
			t.Fatal(err)
		}
		if left == "" && !m.Done {
			t.Errorf("nothing is left, but the answer is %s", line)
		}
		if left != "" && (m.Error == nil || m.Error.Code != payload.CodeNotEmpty || m.Error.Message != left) {
			t.Errorf("with %s left the answer is %s", left, line)
		}
	}
}
