// Package discard removes a job's sandbox, or keeps it where the site wants to look into it.
package discard

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// Sandbox is what this package does to a sandbox.
type Sandbox interface {
	Dir() string
	MoveTo(ctx context.Context, path string) error
	Remove(ctx context.Context) error
}

// Knobs are the site's wishes.
type Knobs struct {
	Delay  time.Duration // STARTER_REMOVE_EXECUTE_DIR_DELAY_TIME
	MoveTo string        // STARTER_MOVE_WORKING_DIR_ON_EXIT; empty: the sandbox is removed
}

// Discard ends a sandbox as the stock starter does (HTCondor
// src/condor_starter.V6.1/starter.cpp:removeTempExecuteDir). No process of the job may be
// alive. A failure is only logged: the startd, or the schedd of the
// local universe, removes what is left of a starter.
func Discard(ctx context.Context, box Sandbox, knobs Knobs, log *slog.Logger) {
	wait(ctx, knobs.Delay, log)
	if knobs.MoveTo != "" {
		log.Info(fmt.Sprintf("Renaming %s to %s instead of deleting it", box.Dir(), knobs.MoveTo))
		err := box.MoveTo(ctx, knobs.MoveTo)
		if err == nil {
			return
		}
		log.Error("Failed to rename the sandbox, it is removed (STARTER_MOVE_WORKING_DIR_ON_EXIT)", "error", err)
	}
	log.Info("Removing " + box.Dir())
	if err := box.Remove(ctx); err != nil {
		log.Error("Failed to remove the sandbox; the daemon that started this starter will try again", "error", err)
	}
}

// wait gives people time to look into the sandbox. A signal ends it, as it ends the stock
// starter's sleep(3).
func wait(ctx context.Context, delay time.Duration, log *slog.Logger) {
	if delay <= 0 {
		return
	}
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM, syscall.SIGQUIT)
	defer signal.Stop(told)
	log.Info(fmt.Sprintf("Sleeping for %d seconds before removing execute directory", delay/time.Second))
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case s := <-told:
		log.Info("The wait before removing the execute directory is cut short", "signal", s.String())
	}
}
