package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/condor/config"
	"podstarter/starter/failure"
	"podstarter/starter/settings"
)

// How often a sick pod is checked. The API server hears three calls each time,
// from every pod that its own trouble has made sick, so the pause grows and
// varies.
const (
	firstCheck   = 5 * time.Second
	longestCheck = time.Minute
)

// keep is `condor_pod_starter -keep`, a daemon of the condor_master: it looks
// after the pod between jobs, with the rights that the startd's cron jobs lack.
// While the pod is sick it checks it again and again, and it publishes what
// starters learn after their jobs have begun.
func keep(ctx context.Context, cfg *config.Config, log *slog.Logger) int {
	ctx, stop := signal.NotifyContext(ctx, unix.SIGTERM, unix.SIGQUIT, unix.SIGINT)
	defer stop()
	set, err := settings.Read(cfg)
	if err == nil && set.Backend == settings.BackendLocal {
		_, err = newBackend(ctx, set, cfg, log) // which makes the directory that is watched
	}
	if err == nil {
		err = keepPod(ctx, newCaretaker(set, cfg), firstCheck, healInChild, log)
	}
	if err != nil {
		log.Error("Cannot look after the pod", "error", failure.OneLine(err))
		return exitGeneral
	}
	return exitNormal
}

// keepPod does the work of keep until ctx ends. heal checks the pod once and
// notes the result; first is the pause between the first two checks.
func keepPod(ctx context.Context, c caretaker, first time.Duration, heal func(context.Context) error, log *slog.Logger) error {
	changed, err := watchDirectory(ctx, c.store.dir)
	if err != nil {
		return err
	}
	var about time.Time // since when the pod has been sick, of the sickness that is being checked
	pause := first
	timer := time.NewTimer(0)
	timer.Stop()
	for {
		if err := c.publish(); err != nil {
			log.Warn("The monitor does not hear of the pod's state", "error", err)
		}
		h, err := c.store.read()
		if err != nil {
			log.Warn("What was known of the pod's health is lost", "error", err)
		}
		switch until, reason := h.offline(time.Now()); {
		case until.IsZero():
			about = time.Time{}
			timer.Stop()
		case !about.Equal(h.Sick.Since):
			// Whether a check sees the sickness at all must be known soon.
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
			switch err := heal(ctx); {
			case err == nil:
				log.Info("A check of the pod found nothing wrong")
			case ctx.Err() == nil:
				log.Info("The pod is still sick", "error", failure.OneLine(err))
			}
			timer.Reset(pause + rand.N(pause/5+1))
			pause = min(2*pause, longestCheck)
		}
	}
}

// healInChild runs a check in a process of its own: what a client of the API
// server takes of memory is gone with it.
func healInChild(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	out, err := exec.CommandContext(ctx, program, "-heal").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %.500s", err, out)
	}
	return nil
}

// heal is `condor_pod_starter -heal`: it checks a sick pod once, and lets it take
// jobs again if the check finds nothing although it did before.
func heal(ctx context.Context, out io.Writer, cfg *config.Config, log *slog.Logger) int {
	set, err := settings.Read(cfg)
	if err != nil {
		fmt.Fprintln(out, failure.OneLine(err))
		return exitGeneral
	}
	c := newCaretaker(set, cfg)
	h, err := c.store.read()
	if err != nil {
		fmt.Fprintln(out, err)
		return exitGeneral
	}
	if until, _ := h.offline(time.Now()); until.IsZero() {
		return exitNormal
	}
	_, trouble := preflight(ctx, cfg, log)
	err = c.note(func(now health, at time.Time, _ time.Duration) health { return now.checked(*h.Sick, trouble, at) })
	if err != nil {
		fmt.Fprintln(out, err)
	}
	if trouble != nil {
		fmt.Fprintln(out, failure.OneLine(trouble))
	}
	if err != nil || trouble != nil {
		return exitGeneral
	}
	return exitNormal
}
