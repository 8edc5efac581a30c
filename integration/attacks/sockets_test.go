//go:build pool

package attacks

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"podstarter/integration/harness"
)

// starterSockets describes the starters of the pod as the probe expects it: a line for
// each, with the address of the pod's daemons and the name of the abstract socket by which
// condor_shared_port passes connections on. A job finds them among those of the whole
// machine, which must not be attacked.
func (w *target) starterSockets(t *testing.T) string {
	t.Helper()
	host, err := w.address(t)
	if err != nil {
		t.Fatal(err)
	}
	var told strings.Builder
	for _, p := range w.starters(t, nil) {
		table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/unix", p.PID)) // of its network namespace
		if err != nil {
			t.Fatal(err)
		}
		sockets, err := p.Sockets()
		if err != nil {
			t.Fatal(err)
		}
		// Num RefCount Protocol Flags Type St Inode Path
		const inode, path = 6, 7
		for line := range strings.Lines(string(table)) {
			fields := strings.Fields(line)
			if len(fields) <= path || !strings.HasPrefix(fields[path], "@") {
				continue
			}
			if n, err := strconv.ParseUint(fields[inode], 10, 64); err == nil && slices.Contains(sockets, n) {
				fmt.Fprintf(&told, "%s:%d %s\n", host, w.port, fields[path])
			}
		}
	}
	if told.Len() == 0 {
		t.Fatal("no starter has an abstract socket")
	}
	return told.String()
}

// address is where the pod's daemons listen: loopback, the node's address, or the pod's own.
func (w *target) address(t *testing.T) (string, error) {
	t.Helper()
	if pool.OwnUsers {
		return pool.Kubectl(t.Context(), nil, "-n", harness.Namespace, "get", "pod", w.pod.Name, "-o", "jsonpath={.status.podIP}")
	}
	return pool.Config(t.Context(), w.side, "NETWORK_INTERFACE")
}
