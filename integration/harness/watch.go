package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"podstarter/internal/filewatch"
)

// WaitFile calls ready with the content of a file (nil while there is none) now and
// after each change in its directory, until ready returns true or an error, or the
// context ends.
func WaitFile(ctx context.Context, path string, ready func(content []byte) (bool, error)) error {
	changes, err := filewatch.New()
	if err != nil {
		return err
	}
	defer changes.Close()
	if err := changes.Add(filepath.Dir(path), filewatch.Made|filewatch.Written|filewatch.Placed); err != nil {
		return err
	}
	for {
		content, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		done, err := ready(content)
		if done || err != nil {
			return err
		}
		select {
		case <-changes.Events():
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", path, context.Cause(ctx))
		}
	}
}

// Poll calls ready until it returns true or an error, or the context ends: at short
// intervals first and longer ones later, up to a tenth of a second, or three times what a
// call takes where that is longer. It is for conditions without an event.
func Poll(ctx context.Context, what string, ready func() (bool, error)) error {
	return poll(ctx, what, 100*time.Millisecond, ready)
}

// poll is Poll with another longest interval, for expensive checks.
func poll(ctx context.Context, what string, longest time.Duration, ready func() (bool, error)) error {
	interval := 10 * time.Millisecond
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for {
		began := time.Now()
		done, err := ready()
		if done || err != nil {
			return err
		}
		// Looking at all processes of a slow machine all the time would make it slower still.
		timer.Reset(max(interval, 3*time.Since(began)))
		interval = min(interval*3/2, longest)
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", what, context.Cause(ctx))
		case <-timer.C:
		}
	}
}
