//go:build pool

package e2e

import (
	"context"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/classads"
	"podstarter/integration/harness"
)

//go:embed testdata/fetchwork.sh
var fetchWorkPool string

// TestFetchedWorkInPod: a startd in a pod that fetches work gets it done in a payload container, in the site's default image or in one that
// the job names.
func TestFetchedWorkInPod(t *testing.T) {
	oursOnly(t)
	const dir = "/tmp/e2e-fetched"
	if out, err := pool.EP(t.Context(), side, "sh", "-c", "rm -rf "+dir+" && mkdir -m 1777 "+dir); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Cleanup(func() {
		if _, err := pool.EP(context.Background(), side, "rm", "-rf", dir); err != nil {
			t.Error(err)
		}
	})
	// A job is given until the startd has accepted it: it refuses what it fetches while another runs.
	job := func(proc int, lines string) string {
		return fmt.Sprintf("if [ ! -e %s/accepted.%d ]; then cat <<'A'\nProcId = %d\n%sA\nexit 0; fi\n", dir, proc, proc, lines)
	}
	const common = "JobUniverse = 5\nClusterId = 12\nCmd = \"/bin/sh\"\nOwner = \"personal\"\nOut = \"out\"\nRequestCpus = 1\nRequestMemory = 1\nRequestDisk = 1\n"
	fetch := siteProgram(t, "fetch", "#!/bin/sh\ncat >/dev/null\n"+
		job(1, common+"Arguments = \"-c 'pwd; exit 5'\"\n")+
		job(2, common+"Arguments = \"-c 'kill -9 $$'\"\nWantContainer = true\nWantDockerImage = true\nContainerImage = "+classads.QuoteOld(pool.Image("busybox"))+"\n"))
	reply := siteProgram(t, "fetched-reply", "#!/bin/sh\nproc=$(sed -n '/^-----/q; s/^ProcId = //p')\n[ \"$1\" != accept ] || touch "+dir+"/accepted.$proc\ncat >/dev/null\n")
	exit := siteProgram(t, "fetched-exit", "#!/bin/sh\nad=$(cat)\nproc=$(echo \"$ad\" | sed -n 's/^ProcId = //p')\n"+
		"{ echo \"$1\"; id -u; echo \"$ad\" | grep -E '^(ExitCode|ExitSignal) ='; cat out; } >"+dir+"/ended.new.$proc 2>&1\nmv "+dir+"/ended.new.$proc "+dir+"/ended.$proc\n")
	reconfigure := func() {
		if out, err := pool.EP(context.Background(), side, "condor_reconfig", "-daemon", "startd"); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	t.Cleanup(reconfigure) // when the lines are gone
	configure(t,
		"STARTD_JOB_HOOK_KEYWORD = E2EFETCH", "E2EFETCH_HOOK_FETCH_WORK = "+fetch, "E2EFETCH_HOOK_REPLY_FETCH = "+reply, "E2EFETCH_HOOK_JOB_EXIT = "+exit,
		"FetchWorkDelay = 1", "UPDATE_INTERVAL = 2",
	)
	reconfigure()
	for proc, want := range map[int][]string{1: {"exit", "ExitCode = 5", "/scratch"}, 2: {"exit", "ExitSignal = 9"}} {
		out, err := pool.EP(t.Context(), side, "sh", "-c", fmt.Sprintf("for try in $(seq 300); do [ -e %[1]s/ended.%[2]d ] && break; sleep 0.2; done; cat %[1]s/ended.%[2]d", dir, proc))
		if err != nil {
			t.Errorf("job %d: %v\n%s", proc, err, out)
			continue
		}
		for _, line := range want {
			if !strings.Contains(out, line) {
				t.Errorf("job %d lacks %q:\n%s", proc, line, out)
			}
		}
	}
	waitSlot(t, `State =?= "Unclaimed"`) // or nobody ends the startd's own claim when the lines are gone
	if t.Failed() {
		log, _ := pool.EP(t.Context(), side, "sh", "-c", "tail -n 80 $(condor_config_val LOG)/StarterLog.slot*; tail -n 40 $(condor_config_val LOG)/StartLog")
		t.Log(log)
	}
}

// TestFetchedWork: a startd that fetches work itself gets it done by our starter as by the stock one: what the hooks are told, the output,
// the event log, and the starter's exit code, for ends of all kinds. Our daemons are an ordinary user's, then root's, where jobs run as
// users of their own.
func TestFetchedWork(t *testing.T) {
	oursOnly(t)
	if !pool.Has(harness.Stock) {
		t.Skip("the pool has no stock starter; start it with: pool up --stock")
	}
	installed := installStarter(t, harness.Stock)
	stock := subjectsOf(t, fetchWorkPool, "/usr/sbin/condor_starter", "personal")
	t.Run("without root", func(t *testing.T) {
		compareFetched(t, stock, subjectsOf(t, fetchWorkPool, installed, "personal"), "20007")
	})
	t.Run("with root", func(t *testing.T) { compareFetched(t, stock, subjectsOf(t, fetchWorkPool, installed, "root"), "10001") })
}

var (
	// fetchedChances are what differs from run to run.
	fetchedChances = regexp.MustCompile(`sock=\w+|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?|dir_\d+|CONDOR_STARTER_PID=\d+|^_CONDOR_ANCESTOR_.*|Usr \d+ \S+ Sys \d+ \S+|(actually suspended:|NumberOfPIDs"><i>) ?\d+`)
	// fetchedFigures are attributes whose values are measured. That they are there is compared.
	fetchedFigures = regexp.MustCompile(`^(ImageSize|ResidentSetSize|Block\w+|RecentBlock\w+|JobDuration|JobPid|JobStartDate|StatsLifetime|RecentStatsLifetime|Remote\w+Cpu|NumPids|P(re|ost)Job(Duration|Pid|StartDate)) = .*`)
	// ofOurs are attributes and variables that the stock starter does not have for such jobs: it knows nothing of the slot, and little of the user
	// (docs/admin/plain.md).
	ofOurs = regexp.MustCompile(`^(OSHomeDir|ShouldTransferFiles|TransferInput|WantDelayedUpdates|\w+Provisioned|ProvisionedResources|ExecuteDirWasEncrypted|StarterIpAddr|CpusUsage|OrigIwd|Vacate\w+|` +
		`(ClusterId = 1|ProcId = 0|JobUniverse = 5)$|CUDA_VISIBLE_DEVICES|NVIDIA_VISIBLE_DEVICES|GPU_DEVICE_ORDINAL|_CONDOR_AssignedGPUs|CUBACORES|GOMAXPROCS|PYTHON_CPU_COUNT|TF_LOOP_PARALLEL_ITERATIONS|OMP_THREAD_LIMIT|\w+_THREADS)`)
	// containerWords are what our sentences add to stock's.
	containerWords = regexp.MustCompile(`: (there is no such file in the container|it is not executable by user \d+ \(mode \S+\)|the interpreter "\S+" is not in the container)$`)
)

// asFetched is what is compared of a subject: lists of attributes have no order that says anything.
func asFetched(subject string, lines []string) []string {
	var kept []string
	for _, line := range lines {
		line = fetchedFigures.ReplaceAllString(fetchedChances.ReplaceAllString(containerWords.ReplaceAllString(line, ""), "*"), "$1")
		if line == "*" || ofOurs.MatchString(line) {
			continue
		}
		kept = append(kept, line)
	}
	if subject == "prepare" || subject == "update" || subject == "exit" || slices.Contains(kept, "<c>") {
		slices.Sort(kept)
	}
	if subject == "update" { // how many there are is a matter of time
		kept = slices.Compact(kept)
	}
	return kept
}

// compareFetched compares what became of the jobs. user is whom they run as under ours.
func compareFetched(t *testing.T, stock, ours map[string]map[string][]string, user string) {
	// That neither compared nothing.
	for job, want := range map[string][2]string{
		"exit": {"log", "return value 5"}, "killed": {"log", "signal 9"}, "local": {"log", "return value 5"}, "noiwd": {"starter", "status 0"}, "missing": {"exit.reason", "evict"},
		"xml": {"log", "JobTerminatedEvent"}, "prepared": {"out", "arguments: prepared"}, "preparefails": {"log", "not here"}, "scripts": {"scripts", "post"},
		"suspended": {"log", "Job was suspended"}, "vacated": {"out", "got TERM"}, "vacatedint": {"out", "got INT"}, "vacatedfast": {"log", "Job was evicted"},
		"scheduler": {"starter", "status 1"}, "nocmd": {"starter", "status 1"}, "keyword": {"out", "configured"}, "also": {"log", "JobTerminatedEvent"}, "named": {"out", "arguments: named"}, "nokeyword": {"starter", "status 1"},
	} {
		for of, all := range map[string]map[string]map[string][]string{"stock": stock, "ours": ours} {
			if text := strings.Join(all[job][want[0]], "\n"); !strings.Contains(text, want[1]) {
				t.Errorf("%s: %s of %s lacks %q:\n%s", of, want[0], job, want[1], text)
			}
		}
	}
	for job := range stock {
		if job == "logs" {
			continue
		}
		for subject := range ours[job] {
			if subject == "update" {
				continue
			}
			if _, there := stock[job][subject]; !there {
				t.Errorf("%s: only ours has %q: %q", job, subject, ours[job][subject])
			}
		}
		for subject, lines := range stock[job] {
			switch {
			case subject == "update" && job != "suspended": // a hook for updates may be killed with what is left of a short job
				continue
			case subject == "prepare.user":
				if got := strings.Join(ours[job][subject], " "); got != user {
					t.Errorf("%s: the hook runs as user %q, want %s", job, got, user)
				}
				continue
			case job == "relativeiwd" && (subject == "prepare" || subject == "update" || subject == "exit"): // Iwd is absolute
				continue
			case job == "relative" && (subject == "prepare" || subject == "update" || subject == "exit"): // Cmd is as the hook wrote it
				continue
			case job == "badarguments" && subject == "log": // where only ours says why
				if text := strings.Join(ours[job][subject], "\n"); !strings.Contains(text, "attribute Arguments") {
					t.Errorf("%s: the log is %q", job, text)
				}
				continue
			case job == "vacatedfast" && subject == "err": // a shell may see the end of its child
				continue
			case job == "badoutput" && subject == "err": // no file is made when another cannot be
				continue
			}
			want, got := asFetched(subject, lines), asFetched(subject, ours[job][subject])
			if subject == "update" { // in which states the job is at the moments of updates is chance
				want, got = withoutStates(want), withoutStates(got)
			}
			if user != "20007" { // under root, the users of jobs have no home
				want, got = withoutHome(want), withoutHome(got)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %s (-stock +ours):\n%s", job, subject, diff)
			}
		}
	}
	if t.Failed() {
		t.Log(strings.Join(ours["logs"][""], "\n"))
	}
}

func withoutStates(lines []string) []string {
	return slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "JobState = ") })
}

func withoutHome(lines []string) []string {
	return slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "HOME=") })
}
