package harness

import (
	"net"
	"strconv"
	"testing"
)

// TestFreePort: the port can be listened on at once, and is none that the kernel gives to connections.
func TestFreePort(t *testing.T) {
	for range 20 {
		port, err := FreePort()
		if err != nil {
			t.Fatal(err)
		}
		if port < firstPort || port > lastPort {
			t.Errorf("port %d is outside %d to %d", port, firstPort, lastPort)
		}
		l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close() // so that the next choice is another
	}
}
