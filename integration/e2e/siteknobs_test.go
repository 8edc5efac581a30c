//go:build pool

package e2e

import (
	_ "embed"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/harness"
)

//go:embed testdata/siteknobs.sh
var siteKnobsPool string

// TestSiteKnobs: a site's maps for ClassAds count as under the stock starter, and so do knobs with which it looks into sandboxes, that
// give a job the claim to what is left of its slot, and that say which access points it trusts in its domain. A job without its
// common files goes back to the queue. Slots say how large common files are, as starters told the access point. Where the site demands encrypted sandboxes, no job runs.
func TestSiteKnobs(t *testing.T) {
	oursOnly(t)
	starter, err := pool.Config(t.Context(), side, "STARTER")
	if err != nil {
		t.Fatal(err)
	}
	run := func(starter string) map[string]string {
		t.Helper()
		port, err := harness.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		out, err := pool.EPInput(t.Context(), side, strings.NewReader(personalConfiguration+siteKnobsPool), "sh", "-s", starter, strconv.Itoa(port))
		if err != nil {
			t.Fatalf("%s: %v\n%s", starter, err, out)
		}
		return sections(out)
	}
	ours, stock := run(starter), run("/usr/sbin/condor_starter")
	const split = "split claims: 1\n"
	want := map[string]string{
		"job 0": "12\n" + split, "job 1": "8\n" + split, "job 2": "16\n" + split, "job 3": "12\n" + split,
		"left": "", "slept": "4\n", "rights": strings.Repeat("755 condor\n", 4),
		"account local": "personal.cc\n", "account stranger": "games.cc\n", "account trusted": "personal.cc\n",
		"mapped": "1\t2\n# method, name, niceness\n", "sessionless": "Normal termination (return value 0)\n",
		"openly": "Normal termination (return value 0)\n",
	}
	for section, text := range want {
		if stock[section] != text {
			t.Errorf("stock, %s: %q, want %q", section, stock[section], text)
		}
	}
	want["rights"] = strings.Repeat("700 condor\n", 4) // a later job may have the user of this one
	delete(want, "sessionless")
	if !strings.Contains(ours["sessionless"], "Reason: ") || !strings.Contains(ours["sessionless"], "SEC_DEFAULT_AUTHENTICATION requires authentication, which starters cannot do by themselves") {
		t.Errorf("where claims have no secret of a session, the job says %q", ours["sessionless"])
	}
	for section, text := range want {
		if ours[section] != text {
			t.Errorf("%s: %q, want %q", section, ours[section], text)
		}
	}
	for of, size := range map[string]string{"stock": stock["common size"], "ours": ours["common size"]} { // on the disk, which takes its time
		if n, err := strconv.Atoi(strings.TrimSpace(size)); err != nil || n <= 0 {
			t.Errorf("%s: slots say that the common file has %q", of, size)
		}
	}
	if diff := cmp.Diff(stock["kept"], ours["kept"]); diff != "" || strings.Count(ours["kept"], "result\n") != 4 {
		t.Errorf("what is kept (-stock +ours):\n%s", diff)
	}
	if !strings.Contains(ours["encrypted"], "no job runs") || !strings.Contains(ours["encrypted"], "STARTER.ENCRYPT_EXECUTE_DIRECTORY = False") {
		t.Errorf("where sandboxes must be encrypted, the log says %q", ours["encrypted"])
	}
	if t.Failed() {
		t.Log(ours["log"])
	}
}
