//go:build pool

package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"podstarter/integration/harness"
	"podstarter/integration/images/probe/facts"
)

var (
	leasedPattern   = regexp.MustCompile(`^leased payload container container=(\S+)`)
	releasedPattern = regexp.MustCompile(`^releasing payload container`)
	specPattern     = regexp.MustCompile(`^Binding: container \S+ is to run (\S+)`)
	freshPattern    = regexp.MustCompile(`^Binding: container \S+ runs \S+ already`)
	aheadPattern    = regexp.MustCompile(`^making payload container ahead container=(\S+) image=(\S+)`)
	startedPattern  = regexp.MustCompile(`^Create_Process succeeded`)
)

// activations reads the starters' logs and the startd's lines about their ends, and what
// starters made ahead.
func activations(pool *harness.Pool, marks harness.LogMarks) (all []Activation, ahead []Ahead, err error) {
	runs, err := pool.RunsSince(harness.Ours, marks)
	if err != nil {
		return nil, nil, err
	}
	exits, err := pool.ExitsSince(harness.Ours, marks)
	if err != nil {
		return nil, nil, err
	}
	for _, run := range runs {
		a := Activation{Slot: run.Slot, PID: run.PID, Job: run.Job, Began: run.Began, Ended: run.Ended, Exit: exits[run.PID]}
		for _, line := range run.Lines {
			if m := leasedPattern.FindStringSubmatch(line.Text); m != nil {
				a.Container, a.Leased = m[1], line.Time
			}
			if m := specPattern.FindStringSubmatch(line.Text); m != nil {
				a.Spec = m[1]
			}
			if m := aheadPattern.FindStringSubmatch(line.Text); m != nil {
				ahead = append(ahead, Ahead{run.PID, m[1], m[2], line.Time})
			}
			a.Fresh = a.Fresh || freshPattern.MatchString(line.Text)
			if releasedPattern.MatchString(line.Text) {
				a.Released = line.Time
			}
			if startedPattern.MatchString(line.Text) {
				a.Started = line.Time
			}
		}
		all = append(all, a)
	}
	return all, ahead, nil
}

// account reads what a job printed; ok is false if there is none.
func account(dir string, proc int) (Account, bool, error) {
	text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("out.%d", proc)))
	if os.IsNotExist(err) {
		return Account{}, false, nil
	}
	if err != nil {
		return Account{}, false, err
	}
	first, rest, _ := strings.Cut(string(text), "\n")
	var a Account
	if err := json.Unmarshal([]byte(first), &a.Account); err != nil {
		return Account{}, false, nil // which the checker calls lost
	}
	a.Ended = strings.TrimSpace(rest) == facts.End
	return a, true, nil
}

// finals reads the history.
func finals(ctx context.Context, jobs []harness.Job) (map[string]Final, error) {
	all := map[string]Final{}
	for _, job := range jobs {
		ad, err := job.History(ctx)
		if err != nil {
			return nil, err
		}
		all[job.ID()] = Final{
			Status: int(ad.IntOr("JobStatus", 0)), ExitCode: int(ad.IntOr("ExitCode", 0)), Signaled: ad.BoolOr("ExitBySignal", false),
		}
	}
	return all, nil
}

// specs are the images in the pod's spec, by container.
func specs(ctx context.Context, pool *harness.Pool, containers []string) (map[string]string, error) {
	text, err := pool.Kubectl(ctx, nil, "get", "pod", "glidein", "-o", `jsonpath={range .spec['containers','initContainers'][*]}{.name} {.image}{"\n"}{end}`)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for line := range strings.Lines(text) {
		name, image, _ := strings.Cut(strings.TrimSpace(line), " ")
		if slices.Contains(containers, name) {
			found[name] = image
		}
	}
	return found, nil
}

// patches are the starters' patches after a place in the API server's log.
func patches(log *harness.APILog) ([]Patch, error) {
	calls, err := log.Calls()
	if err != nil {
		return nil, err
	}
	var all []Patch
	for _, call := range calls {
		if call.Verb == "patch" {
			all = append(all, Patch{call.Code, call.Began, call.Ended})
		}
	}
	return all, nil
}

// leftovers are the processes and sandboxes that still exist when they have had
// time to go.
func leftovers(ctx context.Context, pool *harness.Pool, users int) []string {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var left []string
	for _, keep := range []func(harness.Process) bool{pool.Starters(harness.Ours), pool.Payloads(harness.Ours, users)} {
		if err := harness.WaitNone(ctx, keep); err != nil {
			left = append(left, err.Error())
		}
	}
	var names string
	err := harness.Poll(ctx, "the sandboxes to go", func() (bool, error) {
		var err error
		names, err = pool.EP(ctx, harness.Ours, "sh", "-c", `ls "$(condor_config_val EXECUTE)"`)
		return strings.TrimSpace(names) == "", err
	})
	if err != nil {
		left = append(left, fmt.Sprintf("%v: %s", err, names))
	}
	return left
}
