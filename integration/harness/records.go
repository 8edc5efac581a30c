package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"podstarter/classads"
)

// History waits for the ad that the schedd keeps of a finished job.
func (j Job) History(ctx context.Context) (*classads.Ad, error) {
	// PER_JOB_HISTORY_DIR of the pool is the directory of its logs.
	path := filepath.Join(j.pool.State, "log", "pool", "history."+j.ID())
	var ad *classads.Ad
	err := WaitFile(ctx, path, func(text []byte) (bool, error) {
		if text == nil {
			return false, nil
		}
		var err error
		if ad, err = classads.ParseOld(string(text)); err != nil {
			return false, err
		}
		// A file of this name may be there from an earlier pool.
		return filepath.Base(ad.StringOr("Iwd", "")) == filepath.Base(j.Dir), nil
	})
	if err != nil {
		return nil, fmt.Errorf("history of job %s: %w", j.ID(), err)
	}
	return ad, nil
}

// Ad asks the schedd for the ad of a job in the queue.
func (j Job) Ad(ctx context.Context) (*classads.Ad, error) {
	text, err := j.pool.AP(ctx, "condor_q", "-long", j.ID())
	if err != nil {
		return nil, err
	}
	ad, err := classads.ParseOld(text)
	if err != nil {
		return nil, fmt.Errorf("reading the ad of job %s: %w", j.ID(), err)
	}
	if ad.Len() == 0 {
		return nil, fmt.Errorf("job %s is not in the queue", j.ID())
	}
	return ad, nil
}

// starterLog is the log of the first slot's starters.
func (p *Pool) starterLog(side Side) string {
	return filepath.Join(p.sides[side].logs, "StarterLog.slot1")
}

// runs are those of the job in the text of its starters' log.
func (j Job) runs(text []byte) ([]Run, error) {
	if int64(len(text)) < j.logged {
		return nil, nil
	}
	runs, err := ParseStarterLog(string(text[j.logged:]))
	return RunsOf(runs, j.ID()), err
}

// Run waits until the log tells the end of the job's n-th run (from 1).
func (j Job) Run(ctx context.Context, n int) (Run, error) {
	var found Run
	err := WaitFile(ctx, j.pool.starterLog(j.Side), func(text []byte) (bool, error) {
		runs, err := j.runs(text)
		if err != nil || len(runs) < n {
			return false, err
		}
		found = runs[n-1]
		return !found.Ended.IsZero(), nil
	})
	if err != nil {
		return found, fmt.Errorf("run %d of job %s: %w", n, j.ID(), err)
	}
	return found, nil
}

// Describe is all that helps to understand what became of a job.
func (j Job) Describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "job %s on the %s side, in %s\n", j.ID(), j.Side, j.Dir)
	events, err := j.Events()
	if err != nil {
		fmt.Fprintf(&b, "events: %v\n", err)
	}
	for _, e := range events {
		fmt.Fprintf(&b, "%03d %s %s\n", e.Number, e.Stamp, strings.ReplaceAll(e.Text(), "\n", "\n    "))
	}
	var runs []Run
	text, err := os.ReadFile(j.pool.starterLog(j.Side))
	if err == nil {
		runs, err = j.runs(text)
	}
	if err != nil {
		fmt.Fprintf(&b, "starter log: %v\n", err)
	}
	for _, run := range runs {
		fmt.Fprintf(&b, "starter %d, %s to %s, status %d:\n%s", run.PID, run.Began.Format(time.StampMilli), run.Ended.Format(time.StampMilli), run.Status, run.Text())
	}
	return b.String()
}
