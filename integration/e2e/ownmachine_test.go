//go:build pool

package e2e

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"podstarter/condor/config"
	"podstarter/integration/harness"
	"podstarter/starter/settings"
)

//go:embed testdata/ownmachine.sh
var ownMachine string

//go:embed testdata/ownmachine-knobs.sh
var machineKnobs string

// onMachine runs a script with the files of our pilot, which has both starters, and the rights of the machine, which no container has: it can mount, and make
// control groups. Its first arguments are the path of a starter and a free port. All that it starts ends with it.
func onMachine(ctx context.Context, script, starter string, args ...string) (map[string]string, error) {
	inPod := pool.InPod(harness.Ours)
	startds, err := harness.Processes(func(p harness.Process) bool { return p.Comm == "condor_startd" && inPod(p) })
	if err != nil {
		return nil, err
	}
	if len(startds) == 0 {
		return nil, errors.New("the execution point has no startd")
	}
	port, err := harness.FreePort()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 8*time.Minute)
	defer cancel()
	argv := append([]string{
		"--target=" + strconv.Itoa(startds[0].PID), "--mount", "--wdns=/", "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
		"sh", "-s", starter, strconv.Itoa(port),
	}, args...)
	command := exec.CommandContext(ctx, "nsenter", argv...)
	command.Env = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8"}
	command.Stdin = strings.NewReader(personalConfiguration + ownMachine + script)
	var said strings.Builder
	command.Stderr = &said
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("running a pool on a machine of its own: %w\n%s\n%s", err, out, said.String())
	}
	return sections(string(out)), nil
}

// TestMachineKnobs: what the stock starter does with the rights of a machine, and what this one does there: shared memory and /tmp of a job's own, process
// namespaces, GPUs of other slots, and proportional set sizes. How much memory a slot has of the machine's is what -check says.
func TestMachineKnobs(t *testing.T) {
	oursOnly(t)
	starter, err := pool.Config(t.Context(), side, "STARTER")
	if err != nil {
		t.Fatal(err)
	}
	const (
		own, everybodys  = "shared memory: \n", "shared memory: machine\n"
		gone, left       = "machine's shared memory: machine\n", "machine's shared memory: left machine\n"
		ownTmp, cleanTmp = "temporary: \n", "machine's temporary: \n"
		ended            = "(1) Normal termination (return value 3)\n"
	)
	starters := map[string]string{"stock": "/usr/sbin/condor_starter", "ours": starter}
	for name, jobs := range map[string]map[string][]string{
		"stock": {
			"default":   {own, ownTmp, "no device\n", gone, cleanTmp},
			"everybody": {everybodys, ownTmp, "device opened\n", left, cleanTmp},
			"processes": {own, ownTmp, "a process of the job's own namespace\n", "no processes of others\n", "device opened\n", gone},
		},
		// It hides no devices.
		"ours": {
			"default":   {own, ownTmp, "device opened\n", gone, cleanTmp},
			"everybody": {everybodys, ownTmp, "device opened\n", gone, cleanTmp},
			"processes": {own, ownTmp, "a process of the job's own namespace\n", "no processes of others\n", "device opened\n", gone, cleanTmp},
		},
	} {
		t.Run(name, func(t *testing.T) {
			printed, err := onMachine(t.Context(), machineKnobs, starters[name])
			if err != nil {
				t.Fatal(err)
			}
			for job, want := range jobs {
				for _, line := range append(want, ended) {
					if !strings.Contains("\n"+printed[job], "\n"+line) && !strings.Contains(printed[job], "\t"+line) {
						t.Errorf("%s lacks %q:\n%s", job, line, printed[job])
					}
				}
				if job != "processes" && strings.Contains(printed[job], "namespace") {
					t.Errorf("%s: %s", job, printed[job])
				}
			}
			// With a control group, the stock starter reports none.
			pss := figure(t, printed["processes"], "ProportionalSetSizeKb_RAW")
			if rss := figure(t, printed["processes"], "ResidentSetSize_RAW"); pss <= 0 || pss >= rss {
				t.Errorf("the proportional set size is %d KiB, of %d KiB", pss, rss)
			}
			checkOffer(t, printed["offer"], 1256-232)
			checkOffer(t, printed["offer of all"], 0)
			if t.Failed() {
				t.Log(printed["log"])
			}
		})
	}
}

// checkOffer compares the memory of the only slot with what -check makes of the knobs; want, if it is not 0, is how much it is.
func checkOffer(t *testing.T, text string, want int64) {
	t.Helper()
	offered, knobs, _ := strings.Cut(text, "\n")
	values := map[string]string{"NUM_CPUS": "1", "NUM_SLOTS_TYPE_1": "1"}
	for line := range strings.Lines(knobs) {
		if knob, value, _ := strings.Cut(strings.TrimSpace(line), " = "); value != "" {
			values[knob] = value
		}
	}
	slot := settings.OfferOf(config.FromMap(values)).Slots.MemoryMB
	if fmt.Sprint(slot) != offered || slot <= 0 || want != 0 && slot != want {
		t.Errorf("the slot has %s MB, by -check %v, want %v: %s", offered, slot, want, knobs)
	}
}

// figure is a number of a history that onMachine's jobs print.
func figure(t *testing.T, text, attribute string) int {
	t.Helper()
	_, after, found := strings.Cut(text, attribute+" = ")
	value, _, _ := strings.Cut(after, "\n")
	n, err := strconv.Atoi(strings.TrimSpace(value))
	if !found || err != nil {
		t.Errorf("no %s in\n%s", attribute, text)
	}
	return n
}
