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

//go:embed testdata/behindbroker.sh
var behindBroker string

// TestAccessPointBehindBroker: an access point that takes no connections, and whose daemons are reached by the broker, has jobs
// with files, chirp, visits, reconnects, removal, and a broker that starts again, as with the stock starter. If the broker is away when
// output is due, our starter waits for it; if the broker refuses, the job goes back to the queue, and its log says why. The same holds if the execution point is behind the
// broker too, for versions in which brokers pass on what two such daemons say.
func TestAccessPointBehindBroker(t *testing.T) {
	oursOnly(t)
	ours, err := pool.Config(t.Context(), side, "STARTER")
	if err != nil {
		t.Fatal(err)
	}
	version, err := pool.EP(t.Context(), side, "condor_version")
	if err != nil {
		t.Fatal(err)
	}
	ways := []string{"one", "both"}
	if strings.Contains(version, " 23.") {
		ways = ways[:1] // its brokers pass nothing on
	}
	for _, behind := range ways {
		t.Run(behind, func(t *testing.T) {
			starters := []string{"/usr/sbin/condor_starter", ours}
			ran := make([]map[string]string, len(starters))
			logs := make([]string, len(starters))
			var together sync.WaitGroup
			for i, starter := range starters {
				args := []string{"sh", "-s", starter}
				for range 3 {
					port, err := harness.FreePort()
					if err != nil {
						t.Fatal(err)
					}
					args = append(args, strconv.Itoa(port))
				}
				together.Go(func() {
					out, err := pool.EPInput(t.Context(), side, strings.NewReader(personalConfiguration+behindBroker), append(args, behind)...)
					if err != nil {
						t.Errorf("%s: %v", starter, err)
					}
					ran[i], logs[i] = sections(out), out
				})
			}
			together.Wait()
			compareBehindBroker(t, ran[0], ran[1], behind == "both")
			if t.Failed() {
				t.Logf("stock:\n%s\nours:\n%s", logs[0], logs[1])
			}
		})
	}
}

// compareBehindBroker compares what became of jobs.
func compareBehindBroker(t *testing.T, stock, ours map[string]string, both bool) {
	t.Helper()
	same := []string{"files", "visited", "reconnected"}
	finished := []string{"files", "reconnected"}
	if !both {
		same = append(same, "visit", "tail")
		finished = append(finished, "restarted", "away", "refused")
	}
	for _, name := range same {
		if diff := cmp.Diff(stock[name], ours[name]); diff != "" {
			t.Errorf("%s (-stock +ours):\n%s", name, diff)
		}
	}
	for _, name := range finished {
		const ended = " 005\ntermination (return value 5)\ninput came\nby-plugin\n\"yes\"\ninput came\nresult: made 3000005\n"
		if !strings.HasSuffix(ours[name], ended) {
			t.Errorf("%s: %s", name, ours[name])
		}
	}
	if !strings.Contains(ours["reconnected"], "022 023") {
		t.Errorf("no shadow came back: %s", ours["reconnected"])
	}
	if !strings.Contains(ours["address"], "CCBID=") || ours["ways"] == "" {
		t.Errorf("the access point is not behind a broker: %s%s", ours["address"], ours["ways"])
	}
	if both {
		return
	}
	if want := "input came\nby-plugin\nstatus 0\n"; ours["visit"] != want {
		t.Errorf("a visit: %q", ours["visit"])
	}
	// What a job has made waits for its broker.
	for _, name := range []string{"restarted", "away"} {
		if strings.Contains(ours[name], " 004 ") {
			t.Errorf("the broker was away, and the job ran again: %s", ours[name])
		}
	}
	if !strings.Contains(ours["refused"], " 004 ") {
		t.Errorf("refused: %s", ours["refused"])
	}
	for _, word := range []string{"cannot connect to the shadow", "connection broker (CCB): broker 127.0.0.1:", "id ", "ALLOW_READ", "nor can it be reached directly"} {
		if !strings.Contains(ours["why"], word) {
			t.Errorf("%q is missing: %s", word, ours["why"])
		}
	}
}
