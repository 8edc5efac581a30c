// Package steps logs how long the steps of a job take. The lines are what `make demo`
// and `make bench` read.
package steps

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// Run runs one step and logs how long it took, in seconds. The end of the activation
// logs, once, why a step failed.
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
