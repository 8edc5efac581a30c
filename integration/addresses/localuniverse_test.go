//go:build pool

package addresses

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// scheddCalled is a line of a schedd's log when a starter calls it about its job's ad.
var scheddCalled = regexp.MustCompile(`\(QMGMT_WRITE_CMD\) from condor@(?:child|family) <(\S+):\d+>`)

// TestLocalUniverse: a starter of a job of the local universe calls the schedd, on the same machine, at the address that the stock starter
// takes, and from there.
func TestLocalUniverse(t *testing.T) {
	w := newWorld(t)
	for i, tt := range []struct{ name, knobs, from string }{
		{"defaults", "", "4"},
		{"prefer IPv6", "STARTER.PREFER_OUTBOUND_IPV4 = False", "4"}, // the schedd tells its starters one address
		{"without IPv4", "ENABLE_IPV4 = False", "6"},
		{"without IPv6", "ENABLE_IPV6 = False\nPREFER_OUTBOUND_IPV4 = False", "4"},
		{"in a private network", "PRIVATE_NETWORK_NAME = inside\nPRIVATE_NETWORK_INTERFACE = 10.77.0.1", "4"},
		{"only in a private network", "NETWORK_INTERFACE = 10.77.0.1\nBIND_ALL_INTERFACES = False", "p"},
		{"without a shared port", "USE_SHARED_PORT = False", "4"},
	} {
		for _, side := range []string{"stock", "ours"} {
			t.Run(tt.name+"/"+side, func(t *testing.T) {
				t.Parallel()
				at, starter := fmt.Sprintf("ap%d%s", i, side), stockStarter
				if side == "ours" {
					starter = ourStarter
				}
				w.daemons(t, at, "", strings.Join([]string{"DAEMON_LIST = MASTER, SCHEDD", "COLLECTOR_HOST = " + manager4, "SCHEDD_NAME = " + at + "@", "SCHEDD_DEBUG = D_COMMAND",
					"STARTER_LOCAL = " + starter, "POD_STARTER_BACKEND = local", tt.knobs}, "\n"))
				await(t, "the schedd", func() bool { return w.read(at, "spool", ".schedd_classad") != "" })
				w.submit(t, at, "local", "universe = local")
				w.running(t, at, "local")
				w.goOn(t, at, "local")
				w.ended(t, at, "local")
				var from []string
				for _, m := range scheddCalled.FindAllStringSubmatch(w.read(at, "log", "SchedLog"), -1) {
					if is := named(m[1], 1); !slices.Contains(from, is) {
						from = append(from, is)
					}
				}
				if diff := cmp.Diff([]string{tt.from}, from); diff != "" {
					t.Errorf("the starter's calls to the schedd (-want +got):\n%s\n%s", diff, w.read(at, "log", "StarterLog"))
				}
			})
		}
	}
}
