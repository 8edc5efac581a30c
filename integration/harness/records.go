package harness

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
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
		// A file of this name may be left from an earlier pool.
		return j.isNamed(string(text)), nil
	})
	if err != nil {
		return nil, fmt.Errorf("history of job %s: %w", j.ID(), err)
	}
	return ad, nil
}

// isNamed reports whether an ad has the job's directory, which no other job has: as
// a value, or as part of the path of its log.
func (j Job) isNamed(ad string) bool {
	name := "/" + filepath.Base(j.Dir)
	return strings.Contains(ad, name+"/") || strings.Contains(ad, name+`"`)
}

// StartdHistory waits until the startd has kept ads of at least n runs of the job, in
// startd_history below the directory of its logs, with the run of the shadow with that
// number, and returns the last. A run that ended before the job executed has an ad too,
// so n alone does not tell which is the last; 0 is for any shadow.
func (j Job) StartdHistory(ctx context.Context, n int, shadow int64) (*classads.Ad, error) {
	path := filepath.Join(j.pool.sides[j.Side].logs, "startd_history")
	var ads []*classads.Ad
	err := WaitFile(ctx, path, func(text []byte) (bool, error) {
		// Each ad is followed by a line that begins with three asterisks
		// (condor_utils/classadHistory.cpp: AppendHistory).
		ads = nil
		var ad strings.Builder
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(line, "***") {
				ad.WriteString(line)
				continue
			}
			// Most ads are not of this job, and parsing is slow.
			if j.isNamed(ad.String()) {
				found, err := classads.ParseOld(ad.String())
				if err != nil {
					return false, err
				}
				if found.IntOr("ClusterId", 0) == int64(j.Cluster) && found.IntOr("ProcId", -1) == int64(j.Proc) {
					ads = append(ads, found)
				}
			}
			ad.Reset()
		}
		return len(ads) >= n && (shadow == 0 || slices.ContainsFunc(ads, func(ad *classads.Ad) bool {
			return ad.IntOr("NumShadowStarts", 0) == shadow
		})), nil
	})
	if err != nil {
		return nil, fmt.Errorf("the startd's history of job %s: %w", j.ID(), err)
	}
	return ads[len(ads)-1], nil
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

// Run waits until the logs of the starters, of any slot, have the end of the job's
// n-th run (from 1).
func (j Job) Run(ctx context.Context, n int) (Run, error) {
	var found Run
	err := Poll(ctx, fmt.Sprintf("the end of run %d of job %s", n, j.ID()), func() (bool, error) {
		all, err := j.pool.RunsSince(j.Side, j.marks)
		if err != nil {
			return false, err
		}
		var runs []Run
		for _, r := range all {
			runs = append(runs, r.Run)
		}
		runs = RunsOf(runs, j.ID())
		slices.SortFunc(runs, func(a, b Run) int { return a.Began.Compare(b.Began) })
		if len(runs) < n {
			return false, nil
		}
		found = runs[n-1]
		return !found.Ended.IsZero(), nil
	})
	return found, err
}

// Describe returns all that helps to understand what happened to a job.
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
	runs, err := j.pool.RunsSince(j.Side, j.marks)
	if err != nil {
		fmt.Fprintf(&b, "starter logs: %v\n", err)
	}
	for _, run := range runs {
		if run.Job == j.ID() {
			fmt.Fprintf(&b, "starter %d in %s, %s to %s, status %d:\n%s", run.PID, run.Slot, run.Began.Format(time.StampMilli), run.Ended.Format(time.StampMilli), run.Status, run.Run.Text())
		}
	}
	return b.String()
}
