//go:build pool

package e2e

import (
	_ "embed"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/harness"
)

// awaiting is what the scripts below wait by.
//
//go:embed testdata/awaited.sh
var awaiting string

//go:embed testdata/silence.sh
var silencePool string

//go:embed testdata/localends.sh
var localEndsPool string

//go:embed testdata/sitehabits.sh
var siteHabitsPool string

// TestSilence: a shadow that falls silent in the middle of input, behind output or in a call is noticed as under the stock starter when the
// site's knobs say, and a starter that hangs is ended when its knob says; the job meets the same events.
func TestSilence(t *testing.T) {
	stock, ours := besideStock(t, silencePool)
	// Seconds at least, and at most: what is beyond is a machine that is slow.
	for row, least := range map[string]struct{ stock, ours, most int }{
		"stall":    {3, 2, 30},
		"first":    {7, 1, 40}, // stock looks after STARTER_XFER_LAST_ALIVE_DELAY, ours knows by itself
		"later":    {7, 1, 40}, // and then in intervals
		"upload":   {1, 1, 6},
		"slow":     {7, 7, 30},
		"starters": {9, 9, 30},
		"call":     {2, 2, 30},
	} {
		for of, c := range map[string]struct {
			sections map[string]string
			least    int
		}{"stock": {stock, least.stock}, "ours": {ours, least.ours}} {
			if got := seconds(c.sections[row]); got < c.least || got > least.most {
				t.Errorf("%s, %s: noticed after %d seconds, want %d to %d:\n%s", of, row, got, c.least, least.most, c.sections[row])
			}
		}
	}
	for row, events := range map[string]string{
		"stall": "000 040 021 004 040 040 001 040 040 005", "first": "000 040 021 004 040 040 001 040 040 005", "later": "000 040 021 004 040 040 001 040 040 005",
		"call": "000 001 022 023 005",
	} {
		for of, sections := range map[string]map[string]string{"stock": stock, "ours": ours} {
			if !strings.Contains(sections[row], "events: "+events+"\n") {
				t.Errorf("%s, %s: events are not %s:\n%s", of, row, events, sections[row])
			}
		}
	}
	for of, sections := range map[string]map[string]string{"stock": stock, "ours": ours} {
		for row, words := range map[string][]string{
			"upload":   {" 022 023 "},
			"slow":     {"GoAhead protocol: 1200\n"},
			"starters": {"GoAhead protocol: 600\n"},
			"hung":     {" 001 022 024 004 ", "runs: 2\n", "told: yes\n", "appears hung! Killing it hard."},
			"refused":  {"a token\n"}, // the session of a claim is encrypted, whatever SEC_DEFAULT_ENCRYPTION says
			"allowed":  {"a token\n"},
		} {
			for _, w := range words {
				if !strings.Contains(sections[row], w) {
					t.Errorf("%s, %s lacks %q:\n%s", of, row, w, sections[row])
				}
			}
		}
	}
	for row, words := range map[string]string{
		"stall": "no progress for 3 seconds", "first": "no progress for 2 seconds", "later": "no progress for 2 seconds",
	} {
		if !strings.Contains(ours[row], words) {
			t.Errorf("%s lacks %q:\n%s", row, words, ours[row])
		}
		if !strings.Contains(stock[row], "Input File transfer stalled for ") {
			t.Errorf("stock, %s: %s", row, stock[row])
		}
	}
	if t.Failed() {
		t.Log(ours["log"])
	}
}

// TestLocalEnds: a schedd refuses to be told how a job of the local universe ended. Both starters try as often as the site wants, say that they
// have given up, and the job runs again; a schedd that takes it at last hears it. Logs get to the disk at once where the site says so.
func TestLocalEnds(t *testing.T) {
	stock, ours := besideStock(t, localEndsPool)
	want := map[string]string{
		"refused": "events: 000 001 005 021\ntries: 3\n" +
			"Maximum number of job cleanup retry attempts (LOCAL_UNIVERSE_MAX_JOB_CLEANUP_RETRIES=2) reached\nruns: 2, ended 1\n",
		"later":   "events: 000 001 005\nruns: 1, ended 1\n",
		"neither": "events: 000 001 005\n",
		"own":     "events: 000 001 005\nsynced: 2 log\n",
		"site":    "events: 000 001 005\nsynced: 2 EventLog\n",
	}
	for of, sections := range map[string]map[string]string{"stock": stock, "ours": ours} {
		for row, text := range want {
			if diff := cmp.Diff(text, sections[row]); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", of, row, diff)
			}
		}
		for _, w := range map[string][]string{
			"stock": {"events: 000 001 005\n", "administrator: help@site.example\n"}, "ours": {"events: 000 021 004 012\n", "sends no mail\n"},
		}[of] {
			if !strings.Contains(sections["mail"], w) {
				t.Errorf("%s, mail lacks %q:\n%s", of, w, sections["mail"])
			}
		}
		if got := seconds(sections["seldom"]); got < 3 || got > 20 { // far from 30, the default
			t.Errorf("%s: the second try came after %d seconds, want 4", of, got)
		}
	}
	if t.Failed() {
		t.Log(ours["log"])
	}
}

// TestSiteHabits: knobs about which a job hears little. A slot has the name that the site wants, also from a startd that does not say it;
// tickets are waited for as long as it says. What differs: without a STARTER_LOG, stock runs nothing and ours writes into LOG; keys are in
// stock's log if the site wants that, and never in ours; ours keeps the state of the machine in LOCK.
func TestSiteHabits(t *testing.T) {
	stock, ours := besideStock(t, siteHabitsPool)
	for of, want := range map[string]map[string]string{
		"stock": {"lock": "", "nolog": "", "keys": `^ran\nkeys: [1-9]`},
		"ours":  {"lock": `^podstarter\.status\n$`, "nolog": `^ran\nStarterLog\.place1_1\n$`, "keys": `^ran\nkeys: 0\n$`},
	} {
		sections := map[string]map[string]string{"stock": stock, "ours": ours}[of]
		want["slot"], want["oldslot"], want["waits"] = `^place1_1\nStarterLog\.place1_1\n$`, `^place1_1\n$`, `^ran\n$`
		want["patient"] = `^seconds: [1-9]\n021\n\tStarter failed to initialize.*\n\tCode 1007 Subcode 0\n$`
		for row, expression := range want {
			got, ran := sections[row]
			if row == "lock" || row == "nolog" { // a section in which nothing is printed
				ran = true
			}
			if expression == "" && got != "" || !ran || !regexp.MustCompile(expression).MatchString(got) {
				t.Errorf("%s, %s: %q, want %s", of, row, got, expression)
			}
		}
		if sections["keys"] == "" {
			t.Errorf("%s printed no rows", of)
		}
	}
	if t.Failed() {
		t.Log(ours["log"])
	}
}

var secondsLine = regexp.MustCompile(`(?m)^seconds: (\d+)$`)

// seconds is what a section says of a time; -1 if it says nothing.
func seconds(section string) int {
	m := secondsLine.FindStringSubmatch(section)
	if m == nil {
		return -1
	}
	n, err := strconv.Atoi(m[1])
	if err != nil {
		return -1
	}
	return n
}

// besideStock runs a script that makes a personal pool with the stock starter, and with ours, both at once.
func besideStock(t *testing.T, script string) (stock, ours map[string]string) {
	t.Helper()
	oursOnly(t)
	starter, err := pool.Config(t.Context(), side, "STARTER")
	if err != nil {
		t.Fatal(err)
	}
	printed := map[string]map[string]string{}
	var mu sync.Mutex
	var both sync.WaitGroup
	for _, program := range []string{"/usr/sbin/condor_starter", starter} {
		port, err := harness.FreePort() // the pods use the machine's own network
		if err != nil {
			t.Fatal(err)
		}
		both.Go(func() {
			out, err := pool.EPInput(t.Context(), side, strings.NewReader(personalConfiguration+awaiting+script), "sh", "-s", program, strconv.Itoa(port))
			if err != nil {
				t.Errorf("%s: %v\n%s", program, err, out)
			}
			mu.Lock()
			defer mu.Unlock()
			printed[program] = sections(out)
		})
	}
	both.Wait()
	return printed["/usr/sbin/condor_starter"], printed[starter]
}
