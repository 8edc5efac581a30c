//go:build pool

package e2e

import (
	_ "embed"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/harness"
)

//go:embed testdata/localuniverse.sh
var localUniversePool string

// TestLocalUniverse: a schedd runs jobs of the local universe by our starter as it does by the stock one: the same output, files,
// event log, last ad, and exit codes of the starter, for ends of all kinds. Both schedds are personal ones, then root's with another
// user's jobs.
func TestLocalUniverse(t *testing.T) {
	oursOnly(t)
	if !pool.Has(harness.Stock) {
		t.Skip("the pool has no stock starter; start it with: pool up --stock")
	}
	installed := installStarter(t, harness.Stock)
	for name, daemons := range map[string]string{"personal": "personal", "root's": "root"} {
		t.Run(name, func(t *testing.T) {
			stock, ours := subjectsOf(t, localUniversePool, "/usr/sbin/condor_starter", daemons), subjectsOf(t, localUniversePool, installed, daemons)
			compareLocal(t, stock, ours)
			owner := map[string]string{"personal": "personal", "root": "daemons"}[daemons] // by CONDOR_IDS
			if got := strings.Join(ours["owner of the log"][""], ", "); got != owner {
				t.Errorf("the starters' logs belong to %q, want %q", got, owner)
			}
		})
	}
}

// subjectsOf runs a script that makes a personal pool beside the stock execution point, and gives what it prints of each job, by job and subject.
func subjectsOf(t *testing.T, script, starter, daemons string) map[string]map[string][]string {
	t.Helper()
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	out, err := pool.EPInput(t.Context(), harness.Stock, strings.NewReader(personalConfiguration+script), "sh", "-s", starter, strconv.Itoa(port), daemons)
	if err != nil {
		t.Fatalf("%s: %v\n%s", starter, err, out)
	}
	all, job, subject := map[string]map[string][]string{}, "", ""
	for line := range strings.Lines(out) {
		line = strings.TrimRight(line, "\n")
		if title, ok := strings.CutPrefix(line, "== "); ok {
			job, subject = title, ""
			all[job] = map[string][]string{}
		} else if title, ok := strings.CutPrefix(line, "-- "); ok {
			subject = title
			all[job][subject] = []string{}
		} else if job != "" {
			all[job][subject] = append(all[job][subject], strings.ReplaceAll(line, strconv.Itoa(port), "PORT"))
		}
	}
	return all
}

// localChances are what differs from run to run.
var localChances = regexp.MustCompile(`sock=\w+|(\d{4}-\d\d-\d\d[T ]|\d\d/\d\d )\d\d:\d\d:\d\d(\.\d+)?|dir_\d+|\(\d{3}\.000\.000\)|` +
	`Cluster"><i>\d+|^Cluster = \d+|CONDOR_STARTER_PID=\d+|^_CONDOR_ANCESTOR_.*|jobad\.\d+|/spool/\d+/0/cluster\d+|17\d{8}|Usr \d+ \S+ Sys \d+ \S+|\d+ \d\d:\d\d:\d\d`)

// Times in logs: as the site wants them for logs of jobs, and in its own.
var (
	shortDate  = regexp.MustCompile(`(?m)^005 \(.*\) \d\d/\d\d \d\d:\d\d:\d\d `)
	subSeconds = regexp.MustCompile(`(?m)^005 \(.*\) .*\d\d:\d\d:\d\d\.\d+ `)
)

// localFigures are attributes whose values are measured, or counted from when something happened. That they are there is compared.
var localFigures = regexp.MustCompile(`^(ImageSize|ResidentSetSize|DiskUsage|Block\w+|RecentBlock\w+|\w*Date|\w*Bday|GlobalJobId|\w+_RAW|EnteredCurrentStatus|` +
	`JobFinishedHookDone|\w*WallClock\w*|\w*SlotTime|ClusterId|\w*VacateTime|TimerRemove|\w*Remote(User|Sys)Cpu|DeferralTime) = .*`)

// asCompared is what is compared of a subject.
func asCompared(subject string, lines []string) []string {
	var kept []string
	for _, line := range lines {
		line = localChances.ReplaceAllString(line, "*")
		if line == "*" { // a daemon's mark in the environment; how many there are is each starter's own
			continue
		}
		if subject == "ad" {
			line = localFigures.ReplaceAllString(line, "$1")
		}
		kept = append(kept, line)
	}
	if subject == "ad" || slices.ContainsFunc(kept, func(line string) bool { return line == "<c>" }) { // XML, in which order says nothing
		slices.Sort(kept)
	}
	return kept
}

// compareLocal compares what became of the jobs.
func compareLocal(t *testing.T, stock, ours map[string]map[string][]string) {
	// That neither compared nothing.
	for job, words := range map[string]string{
		"exit": "Normal termination (return value 5)", "killed": "Abnormal termination (signal 9)", "exithold": "Code 3 Subcode 42", "requeued": "Job terminated and was requeued",
		"removed": "via condor_rm", "released": "Job was released", "systemhold": "Code 26 Subcode 17", "duration": "Code 46", "timer": "TimerRemove expression",
		"sitehold": "Code 26 Subcode 18", "walltime": "Code 3 Subcode 21", "siteremove": "removed by a name", "removebysite": "removed by the site",
		"missing": "Code 6 Subcode 2", "badoutput": "Code 7 Subcode 2", "xml": "JobTerminatedEvent", "executing": "Code 47 Subcode 0", "information": "TriggerEventTypeNumber = 5", "missed": "Code 20",
	} {
		for of, all := range map[string]map[string]map[string][]string{"stock": stock, "ours": ours} {
			if !strings.Contains(strings.Join(all[job]["log"], "\n"), words) {
				t.Errorf("%s: the log of %s lacks %q:\n%s", of, job, words, strings.Join(all[job]["log"], "\n"))
			}
		}
	}
	// Formats that the site chooses for logs, which are nothing but chance in the comparison.
	for of, all := range map[string]map[string]map[string][]string{"stock": stock, "ours": ours} {
		if text := strings.Join(all["exit"]["log"], "\n"); !shortDate.MatchString(text) {
			t.Errorf("%s: the job's log has no short dates:\n%s", of, text)
		}
		text := strings.Join(all["exit"]["event log"], "\n")
		if !strings.Contains(text, "<c>") && !subSeconds.MatchString(text) || !strings.Contains(text, "TriggerEventTypeNumber") {
			t.Errorf("%s: the site's event log has neither parts of seconds nor XML, or no further attributes:\n%s", of, text)
		}
	}
	if left := strings.Join(ours["processes"][""], "\n"); left != "" {
		t.Errorf("left on the machine:\n%s", left)
	}
	// Starters of 23.9 do not tell jobs these two.
	if !slices.ContainsFunc(stock["env"]["out"], func(line string) bool { return strings.HasPrefix(line, "CONDOR_STARTER_PID=") }) {
		ours["env"]["out"] = slices.DeleteFunc(ours["env"]["out"], func(line string) bool {
			return strings.HasPrefix(line, "CONDOR_STARTER_PID=") || strings.HasPrefix(line, "HOME=")
		})
	}
	for job, subjects := range stock {
		for subject := range subjects {
			switch {
			case job == "starterlog", job == "schedlog", job == "processes", job == "event log",
				job == "badarguments",                               // stock tries for ever
				job == "nodirectory" && subject != "starters",       // stock tells of both files, we of the first
				subject == "files" && strings.HasPrefix(job, "bad"): // stock goes on to make the other files
				continue
			}
			if diff := cmp.Diff(asCompared(subject, subjects[subject]), asCompared(subject, ours[job][subject])); diff != "" {
				t.Errorf("%s, %s (-stock +ours):\n%s", job, subject, diff)
			}
		}
	}
	if got := strings.Join(ours["badarguments"]["log"], "\n"); !strings.Contains(got, "attribute Arguments: a single quote is not closed") || !strings.Contains(got, "Code 6 Subcode 0") {
		t.Errorf("a job whose arguments are not understood is not held:\n%s", got)
	}
	if t.Failed() {
		t.Log(strings.Join(ours["starterlog"][""], "\n"))
	}
}
