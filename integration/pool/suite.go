package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"podstarter/integration/pool/internal/cache"
	"podstarter/integration/pool/internal/debian"
	"podstarter/integration/pool/internal/statedir"
)

// suiteRoot has a compiler, and the libraries of the pilot image with their headers.
func suiteRoot(suite string) debian.RootFS {
	return debian.RootFS{
		Suite: suite, Variant: "minbase", Packages: []string{"condor", "condor-dev", "g++"},
		Customize: []string{`rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/apt/*`},
	}
}

// suiteDir returns that root directory, from the cache or freshly made.
func suiteDir(ctx context.Context, dir statedir.Dir) (string, error) {
	settings, err := dir.Load()
	if err != nil {
		return "", err
	}
	store, err := cache.User()
	if err != nil {
		return "", err
	}
	pilot, ok := condorRoots[settings.Condor]
	if !ok {
		return "", errors.New("no pool has been started here that has a suite; start one with `up`")
	}
	root := suiteRoot(pilot.Suite)
	entry, err := store.Dir(ctx, "rootfs-suite", root.Suite+"-"+cache.Key(root.Key()), func(ctx context.Context, dir string) error {
		return root.Make(ctx, os.Stderr, filepath.Join(dir, "root"), filepath.Join(dir, "tmp"))
	})
	return filepath.Join(entry, "root"), err
}

// suiteVerb runs a command where programs for the pilot image are built. The command
// is the caller's own process with another root directory.
func suiteVerb(ctx context.Context, dir statedir.Dir, args []string) (int, error) {
	if len(args) == 0 {
		return 2, errUsage
	}
	root, err := suiteDir(ctx, dir)
	if err != nil {
		return 1, err
	}
	cmd := exec.CommandContext(ctx, "chroot", append([]string{root}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return max(exit.ExitCode(), 1), nil
	case err != nil:
		return 1, fmt.Errorf("running %s for the suite of the pilot image: %w", args[0], err)
	}
	return 0, nil
}
