package activation

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// phase runs one step of the activation and logs how long it took, in
// seconds; the lines are what `make demo` and `make bench` read.
func phase(ctx context.Context, log *slog.Logger, name string, step func(context.Context) error) error {
	begin := time.Now()
	err := step(ctx)
	took := time.Since(begin)
	line := "Phase " + name + " took " + formatSeconds(took) + "s"
	if err != nil {
		line += " and failed" // why is said once, where the activation ends
	}
	log.Info(line)
	return err
}

func formatSeconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }

// now is the wall clock.
func now() time.Time { return time.Now() }
