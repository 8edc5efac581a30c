package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"podstarter/integration/images/probe/facts"
)

func rename(_ *state, argument string) error {
	from, to, _ := strings.Cut(argument, ":")
	return os.Rename(from, to)
}

// flood makes a directory with many files, files with strange names, links that
// lead in circles and out, and a pipe. Beside it, in "trap", it makes what need not
// be sent but must be removed.
func flood(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for i := range facts.FloodFiles {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), []byte(strconv.Itoa(i)), 0o644); err != nil {
			return err
		}
	}
	for _, name := range facts.StrangeNames {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o644); err != nil {
			return err
		}
	}
	for name, target := range map[string]string{"round": "round", "out": "/etc", "passwords": "/etc/condor/passwords.d/POOL"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		return err
	}
	return trapDirectory("trap")
}

// trapDirectory makes a tree deeper than the longest path, with a directory at its
// end that nobody may enter, and a file that is larger than any disk.
func trapDirectory(dir string) error {
	const depth = 3000
	at, err := unix.Open(".", unix.O_DIRECTORY|unix.O_RDONLY, 0)
	for i := 0; err == nil && i < depth; i++ {
		if err = unix.Mkdirat(at, dir, 0o755); err != nil {
			break
		}
		next, e := unix.Openat(at, dir, unix.O_DIRECTORY|unix.O_RDONLY, 0)
		_ = unix.Close(at)
		at, err = next, e
	}
	if err != nil {
		return fmt.Errorf("going down: %w", err)
	}
	defer func() { _ = unix.Close(at) }()
	sparse, err := unix.Openat(at, "sparse", unix.O_CREAT|unix.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(sparse) }()
	if err := unix.Ftruncate(sparse, 1<<42); err != nil {
		return err
	}
	return unix.Fchmod(at, 0)
}
