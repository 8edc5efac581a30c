package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// What tests listen on lies between the pool's own ports (integration/pool/internal/statedir) and those that Linux gives to
// outgoing connections (ip_local_port_range starts at 32768), one of which could take a port that was free a moment ago.
const (
	firstPort = 32000
	lastPort  = 32767
)

// FreePort is a TCP port for a daemon that a test starts. Nobody listens on it now, and neither pool nor kernel gives it away.
func FreePort() (int, error) {
	const n = lastPort - firstPort + 1
	start := rand.IntN(n)
	for i := range n {
		port := firstPort + (start+i)%n
		l, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		l.Close()
		return port, nil
	}
	return 0, fmt.Errorf("choosing a port: none from %d to %d is free", firstPort, lastPort)
}
