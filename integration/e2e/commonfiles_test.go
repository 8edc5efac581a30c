//go:build pool

package e2e

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"
	"testing"

	"podstarter/integration/harness"
)

//go:embed testdata/commonfiles.sh
var commonFilesPool string

// TestCommonFilesWithoutRoot: an execution point without a pod and root keeps common files, as under the stock starter. There, a job
// changes them for the jobs after it. Under ours, each job gets what came from the access point.
func TestCommonFilesWithoutRoot(t *testing.T) {
	oursOnly(t)
	starter, err := pool.Config(t.Context(), side, "STARTER")
	if err != nil {
		t.Fatal(err)
	}
	printed := map[string]map[string]string{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for title, program := range map[string]string{"stock": "/usr/sbin/condor_starter", "ours": starter} {
		port, err := harness.FreePort() // the pods use the machine's own network
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			out, err := pool.EPInput(t.Context(), side, strings.NewReader(personalConfiguration+commonFilesPool), "sh", "-s", program, strconv.Itoa(port))
			if err != nil {
				t.Errorf("%s: %v\n%s", title, err, out)
			}
			mu.Lock()
			defer mu.Unlock()
			printed[title] = sections(out)
		})
	}
	all.Wait()
	for title, want := range map[string]map[string]string{
		"stock": {"offered": "2 Hardlink", "job 0": "as it was\nchanged one\n", "job 1": "poison   \n", "job 2": "poison   \n"},
		"ours":  {"offered": "2 Copy", "job 0": "as it was\nchanged one\nchanged one\n", "job 1": "as it was\n", "job 2": "as it was\n", "log": "it is not what was kept"},
	} {
		got := printed[title]
		for section, text := range want {
			if !strings.Contains(got[section], text) {
				t.Errorf("%s: %s lacks %q:\n%s\n%s", title, section, text, got[section], got["log"])
			}
		}
	}
	if stock := printed["stock"]["stagings"]; strings.TrimSpace(stock) != "1" {
		t.Errorf("stock fetched the files %q times", stock)
	}
}
