//go:build pool

package e2e

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/harness"
)

//go:embed testdata/nodes.sh
var nodesPool string

// TestNodesWithoutPod: on an execution point without a pod, jobs of the parallel universe with one and with two nodes run as under the stock
// starter: places of nodes, files, exit codes, events, and which node ends the job.
func TestNodesWithoutPod(t *testing.T) {
	oursOnly(t)
	starter, err := pool.Config(t.Context(), side, "STARTER")
	if err != nil {
		t.Fatal(err)
	}
	pools := map[string]struct{ starter, daemons string }{
		"stock": {"/usr/sbin/condor_starter", "personal"}, "without root": {starter, "personal"}, "with root": {starter, "root"},
	}
	printed := map[string]map[string]string{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for title, p := range pools {
		port, err := harness.FreePort() // the pods use the machine's own network
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			out, err := pool.EPInput(t.Context(), side, strings.NewReader(personalConfiguration+nodesPool), "sh", "-s", p.starter, strconv.Itoa(port), p.daemons)
			if err != nil {
				t.Errorf("%s: %v\n%s", title, err, out)
			}
			mu.Lock()
			defer mu.Unlock()
			printed[title] = sections(out)
		})
	}
	all.Wait()
	stock := printed["stock"]
	delete(printed, "stock")
	for title, ours := range printed {
		t.Run(title, func(t *testing.T) { compareNodes(t, stock, ours) })
	}
}

func compareNodes(t *testing.T, stock, ours map[string]string) {
	// That neither compared nothing.
	for section, words := range map[string]string{
		"one": "out.0: node 0 of 1, number_0, input came, 1, /usr/bin:/usr/bin:/bin", "last": "Node 1 terminated.\n\t(1) Normal termination (return value 4)",
		"first": "meet: asked.1", "all": "out.1: node 1 of 2", "removed": "meet: asked.0\nmeet: asked.1",
	} {
		if !strings.Contains(ours[section], words) {
			t.Errorf("%s lacks %q:\n%s\n%s", section, words, ours[section], ours["log"])
		}
	}
	for section := range stock {
		if section == "log" {
			continue
		}
		if diff := cmp.Diff(stock[section], ours[section]); diff != "" {
			t.Errorf("%s (-stock +ours):\n%s\n%s", section, diff, ours["log"])
		}
	}
}
