package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

var (
	errNotFound   = errors.New("snippet not found")
	errNotCompile = errors.New("does not compile")
)

// workshop builds and runs test programs.
type workshop struct {
	root string // the top of the project
	dir  string // temporary; all users may enter
}

// overlay writes the file that `go test -overlay` needs to see a mutant.
func (w *workshop) overlay(m mutant) (string, error) {
	source := filepath.Join(w.root, m.File)
	text, err := os.ReadFile(source)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNotFound, err)
	}
	planted, err := m.plant(string(text))
	if err != nil {
		return "", err
	}
	changed := filepath.Join(w.dir, "changed.go")
	if err := os.WriteFile(changed, []byte(planted), 0o600); err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{source: changed}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(w.dir, "overlay.json")
	return path, os.WriteFile(path, list, 0o600)
}

// build builds a package's test program; overlay may be empty.
func (w *workshop) build(ctx context.Context, pkg, overlay string) (string, error) {
	program := filepath.Join(w.dir, strings.ReplaceAll(pkg, "/", "-")+".test")
	args := []string{"test", "-c", "-race", "-o", program}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	compile := exec.CommandContext(ctx, "go", append(args, "./"+pkg)...)
	compile.Dir = w.root
	if text, err := compile.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s: %w\n%s", errNotCompile, pkg, err, text)
	}
	if err := os.Chmod(program, 0o755); err != nil {
		return "", fmt.Errorf("%s has no tests: %w", pkg, err)
	}
	return program, nil
}

// top finds the top of the project from any directory in it.
func top() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module podstarter\n") {
			return dir, nil
		}
		above := filepath.Dir(dir)
		if above == dir {
			return "", errors.New("the working directory is not in the project: no directory above has its go.mod")
		}
		dir = above
	}
}
