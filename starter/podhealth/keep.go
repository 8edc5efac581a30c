package podhealth

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"podstarter/internal/filewatch"
	"podstarter/starter/failure"
)

// How often a sick pod is checked. Each check makes three calls to the API
// server, whose own trouble may have made many pods sick, so the pause grows
// and varies.
const (
	firstCheck   = 5 * time.Second
	longestCheck = time.Minute
)

// Keep looks after a pod between jobs until ctx ends: it publishes what starters
// note, and while the pod is sick it calls recheck again and again. recheck checks
// the pod once and notes the result with Pod.Recheck, in a process of its own or
// here; its error is what the check found. told, if not nil, hears of the pod's condition
// whenever that may have changed; it must not block.
func Keep(ctx context.Context, p Pod, recheck func(context.Context) error, told func(Condition), log *slog.Logger) error {
	return keep(ctx, p, firstCheck, recheck, told, log)
}

// keep is Keep with a pause between the first two checks.
func keep(ctx context.Context, p Pod, first time.Duration, recheck func(context.Context) error, told func(Condition), log *slog.Logger) error {
	changes, err := filewatch.New()
	if err != nil {
		return err
	}
	defer changes.Close()
	if err := changes.Add(p.StateDir, filewatch.Placed); err != nil {
		return err
	}
	changed := changes.Events()
	var about time.Time // when the sickness that is being checked began
	pause := first
	timer := time.NewTimer(0)
	timer.Stop()
	for {
		if err := p.Publish(); err != nil {
			log.Warn("Failed to tell the monitor the pod's state", "error", err)
		}
		h, err := p.Health()
		if err != nil {
			log.Warn("What was known of the pod's health is lost", "error", err)
		}
		if told != nil {
			told(h.condition(time.Now()))
		}
		switch until, reason := h.offline(time.Now()); {
		case until.IsZero():
			about = time.Time{}
			timer.Stop()
		case !about.Equal(h.Sick.Since):
			// Find out soon whether a check sees the sickness at all.
			about, pause = h.Sick.Since, first
			log.Warn("The pod is sick and takes no jobs", "until", until, "reason", reason)
			timer.Reset(0)
		}
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-changed:
			if !ok {
				return nil
			}
		case <-timer.C:
			switch err := recheck(ctx); {
			case err == nil:
				log.Info("A check of the pod found nothing wrong")
			case ctx.Err() == nil:
				log.Info("The pod is still sick", "error", failure.OneLine(err))
			}
			timer.Reset(pause + rand.N(pause/5+1))
			pause = longer(pause)
		}
	}
}

// longer is the pause between two checks that follows this one.
func longer(pause time.Duration) time.Duration { return min(2*pause, longestCheck) }
