package plugin

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"podstarter/classads"
)

// directory is a sandbox that belongs to this process.
type directory string

func (d directory) WriteFile(name string, data []byte, mode fs.FileMode) error {
	return os.WriteFile(filepath.Join(string(d), name), data, mode)
}

func (d directory) ReadFile(name string, limit int64) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(string(d), name))
	return data[:min(limit, int64(len(data)))], err
}

func (d directory) RemoveFile(name string) error { return os.Remove(filepath.Join(string(d), name)) }

// execute runs programs directly.
func execute(ctx context.Context, p Program) (Outcome, error) {
	within, cancel := ctx, func() {}
	if p.Limit > 0 {
		within, cancel = context.WithTimeout(ctx, p.Limit)
	}
	defer cancel()
	cmd := exec.CommandContext(within, p.Path, p.Args...)
	cmd.Env, cmd.Dir = p.Env, p.Dir
	began := time.Now()
	var out []byte
	var err error
	if p.Combined {
		out, err = cmd.CombinedOutput()
	} else {
		out, err = cmd.Output()
	}
	if cmd.ProcessState == nil {
		return Outcome{}, err
	}
	if ctx.Err() != nil {
		return Outcome{}, context.Cause(ctx)
	}
	return Outcome{Status: cmd.ProcessState.Sys().(syscall.WaitStatus), Late: within.Err() != nil, Output: out, Took: time.Since(began)}, nil
}

// script writes a shell script and returns its path.
func script(t testing.TB, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	// Elsewhere first: a process that is forked meanwhile has it open for
	// writing.
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustAd(t testing.TB, text string) *classads.Ad {
	t.Helper()
	ad, err := classads.ParseOld(text)
	if err != nil {
		t.Fatal(err)
	}
	return ad
}

func newRunner(t testing.TB, scratch string) *Runner {
	return &Runner{
		Exec: execute, Files: directory(scratch), Job: classads.NewAd(), Scratch: scratch,
		Environ: []string{"PATH=/usr/bin:/bin"}, KeepErrors: true, PlainData: true, Lifetime: time.Minute,
		Log: slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(string(p))
	return len(p), nil
}
