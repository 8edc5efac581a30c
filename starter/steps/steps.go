// Package steps logs how long the steps of a job take. The lines are what `make demo`
// and `make bench` read.
package steps

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// Run runs one step and logs how long it took, in seconds. Why a step failed is said
// once, where the activation ends.
func Run(ctx context.Context, log *slog.Logger, name string, step func(context.Context) error) error {
	begin := time.Now()
	err := step(ctx)
	line := "Phase " + name + " took " + fmt.Sprintf("%.3f", time.Since(begin).Seconds()) + "s"
	if err != nil {
		line += " and failed"
	}
	log.Info(line)
	return err
}
