package statedir

import (
	"fmt"
	"hash/fnv"
	"net"
	"strconv"
)

// The range that ports are taken from lies below what Linux hands to outgoing connections (ip_local_port_range starts at
// 32768), so that a port which is free now is not taken by a passing connection later.
const (
	firstPort = 20000
	lastPort  = 32000
)

// Prober says whether a TCP port can be listened on.
type Prober func(port int) bool

// Free is the Prober that asks the kernel, on loopback and on every address.
func Free(port int) bool {
	for _, host := range []string{"127.0.0.1", ""} {
		l, err := net.Listen("tcp4", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}

// ChoosePort returns the port to use for name. The one remembered in taken is kept when keep says so (its owner still
// runs) or when it is free; otherwise a free one is chosen that no other name holds, and remembered. seed makes two pools
// of one machine look in different places.
func ChoosePort(taken map[string]int, name, seed string, keep bool, free Prober) (int, error) {
	if port := taken[name]; port != 0 && (keep || free(port)) {
		return port, nil
	}
	held := map[int]bool{}
	for other, port := range taken {
		if other != name {
			held[port] = true
		}
	}
	h := fnv.New32a()
	fmt.Fprint(h, seed, "/", name)
	const n = lastPort - firstPort
	start := int(h.Sum32() % n)
	for i := range n {
		port := firstPort + (start+i)%n
		if !held[port] && free(port) {
			taken[name] = port
			return port, nil
		}
	}
	return 0, fmt.Errorf("choosing a port for %s: none from %d to %d is free", name, firstPort, lastPort-1)
}
