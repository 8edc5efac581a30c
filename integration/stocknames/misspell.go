package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"podstarter/integration/stocknames/shown"
)

// testsTime is how long the tests of one package may take.
const testsTime = 4 * time.Minute

// misspell asks of each name that only our own tests show whether they do: it misspells the name's literals in our code, in a copy
// that `go test -overlay` uses, and runs the tests that name it and need no pool. It tells what each comes to, and returns an error
// if a misspelling was not noticed.
func misspell(ctx context.Context, repository string, rows []shown.Row, which *regexp.Regexp, to io.Writer) error {
	repository, err := filepath.Abs(repository)
	if err != nil {
		return fmt.Errorf("find the repository: %w", err)
	}
	dir, err := os.MkdirTemp("", "misspelt")
	if err != nil {
		return fmt.Errorf("make a directory for copies: %w", err)
	}
	defer os.RemoveAll(dir)
	unnoticed := 0
	for _, r := range rows {
		if !which.MatchString(r.Name.Text) || len(r.Tests) == 0 || len(r.Cases) > 0 {
			continue
		}
		overlay, found, err := misspelt(repository, dir, r.Name.Text)
		if err != nil {
			return err
		}
		said := "no literal of our code is the name alone"
		if found {
			if said, err = noticed(ctx, repository, overlay, r.Tests); err != nil {
				return err
			}
			if said == notNoticed {
				unnoticed++
			}
		}
		fmt.Fprintf(to, "%s %s: %s\n", r.Name.Kind, r.Name.Text, said)
	}
	if unnoticed > 0 {
		return fmt.Errorf("%d misspelt names were not noticed by the tests that name them", unnoticed)
	}
	return nil
}

const notNoticed = "NOT NOTICED"

// misspelt writes copies of the files that have the name as a literal, and the overlay with them.
func misspelt(repository, dir, name string) (overlay string, found bool, err error) {
	replace := map[string]string{}
	for _, d := range ours {
		err := filepath.WalkDir(filepath.Join(repository, filepath.FromSlash(d)), func(path string, e fs.DirEntry, err error) error {
			if err != nil {
				return fmt.Errorf("read our code: %w", err)
			}
			if e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(filepath.Base(filepath.Dir(path)), "test") {
				return nil
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return fmt.Errorf("read our code: %w", err)
			}
			changed, err := withoutName(path, text, name)
			if err != nil || bytes.Equal(changed, text) {
				return err
			}
			copied := filepath.Join(dir, strconv.Itoa(len(replace))+".go")
			replace[path] = copied
			if err := os.WriteFile(copied, changed, 0o644); err != nil {
				return fmt.Errorf("write a copy of %s: %w", path, err)
			}
			return nil
		})
		if err != nil {
			return "", false, err
		}
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", false, fmt.Errorf("write the overlay: %w", err)
	}
	overlay = filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, text, 0o644); err != nil {
		return "", false, fmt.Errorf("write the overlay: %w", err)
	}
	return overlay, len(replace) > 0, nil
}

// withoutName is a Go file in which each literal that is the name has another end.
func withoutName(path string, text []byte, name string) ([]byte, error) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("read our code: %w", err)
	}
	var ends []int
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if s, err := strconv.Unquote(lit.Value); err == nil && strings.EqualFold(s, name) {
				ends = append(ends, files.Position(lit.End()).Offset-1)
			}
		}
		return true
	})
	for _, at := range slices.Backward(ends) {
		text = slices.Concat(text[:at], []byte("Misspelt"), text[at:])
	}
	return text, nil
}

// noticed runs tests, a package at a time, until one fails.
func noticed(ctx context.Context, repository, overlay string, tests []shown.Test) (string, error) {
	of := map[string][]string{}
	var packages []string
	for _, t := range tests {
		if strings.HasPrefix(t.Package, "integration/") {
			continue
		}
		if of[t.Package] == nil {
			packages = append(packages, t.Package)
		}
		of[t.Package] = append(of[t.Package], t.Name)
	}
	if len(packages) == 0 {
		return "only tests with a pool name it", nil
	}
	// Whole lives take longest.
	slices.SortStableFunc(packages, func(a, b string) int { return cmp.Compare(strings.Count(a, "/"), strings.Count(b, "/")) })
	for _, p := range packages {
		one, cancel := context.WithTimeout(ctx, testsTime)
		run := exec.CommandContext(one, "go", "test", "-count=1", "-overlay", overlay, "./"+p, "-run", "^("+strings.Join(of[p], "|")+")$")
		run.Dir = repository
		out, err := run.CombinedOutput()
		late := one.Err()
		cancel()
		var failed *exec.ExitError
		switch {
		case ctx.Err() != nil:
			return "", fmt.Errorf("run the tests of %s: %w", p, context.Cause(ctx))
		case bytes.Contains(out, []byte("[build failed]")):
			return "", fmt.Errorf("run the tests of %s with a misspelt name: they cannot be built:\n%s", p, out)
		case late != nil || errors.As(err, &failed):
			return "noticed by " + p, nil
		case err != nil:
			return "", fmt.Errorf("run the tests of %s: %w", p, err)
		}
	}
	return notNoticed, nil
}
