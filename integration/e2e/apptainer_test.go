//go:build pool

package e2e

import (
	_ "embed"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/harness"
)

//go:embed testdata/apptainer.sh
var apptainerPool string

// TestApptainerWithoutPod: on an execution point without a pod, jobs with images run as the stock starter runs them there, by the
// same Apptainer, under the same startd: the same output, environment, binds and exit codes. Images that do not work hold the job, where
// stock gives it back for ever; what is the site's mistake, or perhaps of this machine, gives it back under both. With further knobs, both
// find out the same about the runtime, and call it alike.
func TestApptainerWithoutPod(t *testing.T) {
	oursOnly(t)
	if !pool.Has(harness.StockApptainer) {
		t.Skip("the pool has no machine with Apptainer; start it with: pool up --stock-apptainer")
	}
	installed := installStarter(t, harness.StockApptainer)
	run := func(starter, daemons string) map[string]string {
		t.Helper()
		port, err := harness.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		out, err := pool.EPInput(t.Context(), harness.StockApptainer, strings.NewReader(personalConfiguration+apptainerPool), "sh", "-s", starter, strconv.Itoa(port), daemons)
		if err != nil {
			t.Fatalf("%s: %v\n%s", starter, err, out)
		}
		return sections(out)
	}
	stock := run("/usr/sbin/condor_starter", "personal")
	t.Run("without root", func(t *testing.T) { compareContained(t, stock, run(installed, "personal"), "user 20007\n") })
	t.Run("with root", func(t *testing.T) { compareContained(t, stock, run(installed, "root"), "user 2010") })
}

// installStarter puts our starter into a machine that has none, and gives its path.
func installStarter(t *testing.T, side harness.Side) string {
	t.Helper()
	program, err := os.Open(filepath.Join(pool.Root, "bin", "condor_pod_starter"))
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	const installed = "/usr/local/sbin/condor_pod_starter"
	if out, err := pool.EPInput(t.Context(), side, program, "sh", "-c", "cat >"+installed+".new && chmod 755 "+installed+".new && mv "+installed+".new "+installed); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return installed
}

// compareContained compares what the script printed. user is what a job says of its user.
func compareContained(t *testing.T, stock, ours map[string]string, user string) {
	// That neither compared nothing.
	for section, words := range map[string]string{
		"classad": "HasSingularity = true", "file": "return value 5", "directory": "shared: ", "target": "in: /srv", "elsewhere": user,
		"scratch": "opt can be written", "itself": "the image itself: one two words", "noprogram": "return value 255", "nowhere": "given back", "pull": "given back", "badbind": "given back",
		"visited": "image: .exec", "called": "allowed: yes, another: none",
		"otherwise-file": "in: /srv", "otherwise-directory": "bound: ls: cannot access", "otherwise-raw": "return value 5",
		"tried-files": "HasSandboxImage = true", "tried-nowhere": "HasSingularity = false", "tried-impatient": "HasSingularity = false", "tried-patient": "HasSandboxImage = true",
		"tried-sif": "HasSIF = true", "tried-pids": "-C\n", "tried-nopids": "--contain\n",
		"launcher-file": "launched: /srv", "launcher-unlaunched": "given back", "amd-called": "--rocm\n",
	} {
		if !strings.Contains(ours[section], words) {
			t.Errorf("%s lacks %q:\n%s\n%s", section, words, ours[section], ours["log"])
		}
	}
	for _, section := range []string{"raw", "badfile", "baddirectory"} {
		if !strings.HasPrefix(stock[section], "given back\n") || !strings.HasPrefix(ours[section], "held: ") ||
			!strings.Contains(ours[section], "Singularity test failed:FATAL") || !strings.Contains(ours[section], "container_image is") || !strings.Contains(ours[section], "Code 45 Subcode 0") {
			t.Errorf("%s under stock:\n%s\nours:\n%s\n%s", section, stock[section], ours[section], ours["log"])
		}
	}
	for section := range stock {
		switch section {
		case "visited": // whose warnings are stock's; HOME is the job's own, as inside
			continue
		case "nofiles", "nofilestarget":
			if _, ok := ours[section]; !ok { // with root
				continue
			}
		case "log", "raw", "badfile", "baddirectory":
			continue
		}
		if diff := cmp.Diff(users.ReplaceAllString(stock[section], ""), users.ReplaceAllString(ours[section], "")); diff != "" {
			t.Errorf("%s (-stock +ours):\n%s", section, diff)
		}
	}
}

// chances are what depends on when a job ran, and where.
var chances = regexp.MustCompile(`condor\.\d+|dir_\d+|slot\d+_1|CONDOR_STARTER_PID=\d+`)

// users are those of jobs: under a startd that is root, they have users of their own.
var users = regexp.MustCompile(`user \d+`)

// sections splits what the script printed, without what differs by chance.
func sections(out string) map[string]string {
	all := map[string]string{}
	name := ""
	for line := range strings.Lines(out) {
		if title, ok := strings.CutPrefix(line, "== "); ok {
			name = strings.TrimSpace(title)
			continue
		}
		all[name] += chances.ReplaceAllString(line, "*")
	}
	delete(all, "") // what preparations said
	return all
}
