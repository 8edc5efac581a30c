package main

import (
	"context"
	"log/slog"
	"time"
)

// phase runs one step of the activation and logs how long it took, in
// seconds; the lines are what `make demo` and `make bench` read.
func phase(ctx context.Context, log *slog.Logger, name string, step func(context.Context) error) error {
	begin := time.Now()
	err := step(ctx)
	took := time.Since(begin)
	if err != nil {
		log.Info(formatPhase(name, took)+" and failed", "error", err)
		return err
	}
	log.Info(formatPhase(name, took))
	return nil
}

func formatPhase(name string, took time.Duration) string {
	return "Phase " + name + " took " + formatSeconds(took) + "s"
}
