package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/integration/harness"
)

// watchMemory runs one more job on each side and reads the peak resident memory
// (VmHWM, KiB) of starters and wrapper until they have ended. The kernel's count
// ends with the process, so the last value that could be read counts: it lacks at
// most what was added in the last interval.
func watchMemory(ctx context.Context, b *bencher) (map[string]int64, error) {
	peaks := map[string]int64{}
	names := []string{harness.Ours.StarterComm(), harness.WrapperComm, harness.Stock.StarterComm()}
	watched, stop := context.WithCancel(ctx)
	defer stop()
	failed := make(chan error, 1)
	go func() { failed <- sample(watched, names, peaks) }()
	for _, side := range []harness.Side{harness.Ours, harness.Stock} {
		jobs, err := b.submit(ctx, side, tasksOf("sleep=1s", nil, 1))
		if err != nil {
			return nil, err
		}
		if _, err := finish(ctx, jobs[0]); err != nil {
			return nil, err
		}
	}
	stop()
	if err := <-failed; err != nil {
		return nil, fmt.Errorf("sampling memory: %w", err)
	}
	return peaks, nil
}

func sample(ctx context.Context, names []string, peaks map[string]int64) error {
	const (
		look = 20 * time.Millisecond // for processes that have come
		read = 2 * time.Millisecond  // of those that are known
	)
	ticker := time.NewTicker(read)
	defer ticker.Stop()
	var known []harness.Process
	var looked time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-ticker.C:
			if now.Sub(looked) > look {
				var err error
				if known, err = harness.Processes(func(p harness.Process) bool { return slices.Contains(names, p.Comm) && !p.IsErrand() }); err != nil {
					return err
				}
				looked = now
			}
		}
		for _, p := range known {
			now, err := harness.ReadProcess(p.PID)
			if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
				continue
			}
			if err != nil {
				return err
			}
			// Before its exec, a child has the memory of its parent.
			if now.Comm == p.Comm {
				peaks[now.Comm] = max(peaks[now.Comm], now.VmHWM)
			}
		}
	}
}
