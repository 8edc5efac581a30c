package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hashicorp/go-multierror"

	"podstarter/integration/pool/internal/statedir"
)

// collectLogs copies every log, of the cluster's daemons, of HTCondor's and of the containers, into target.
func collectLogs(ctx context.Context, dir statedir.Dir, target string) error {
	source := dir.Path("log")
	var errs *multierror.Error
	err := filepath.WalkDir(source, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(source, path)
		if err != nil {
			return err
		}
		// A log that vanishes or cannot be read does not keep the others back.
		if err := copyFile(path, filepath.Join(target, rel), 0o644); err != nil {
			errs = multierror.Append(errs, err)
		}
		return nil
	})
	if err != nil {
		errs = multierror.Append(errs, fmt.Errorf("collecting logs: %w", err))
	}
	return errs.ErrorOrNil()
}

func copyFile(from, to string, mode fs.FileMode) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("copying a file: %w", err)
	}
	return statedir.WriteFile(to, data, mode)
}
