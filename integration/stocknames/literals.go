package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
)

// ours are the directories of the repository whose code handles knobs and jobs' ads.
var ours = []string{"condor", "starter", "sandbox", "payload", "k8sexec", "internal/cedar", "sshtojob"}

// literalsIn are the literal strings of our code. What tests and their helpers
// say does not count.
func literalsIn(repository string) (map[string]bool, error) {
	all := map[string]bool{}
	for _, dir := range ours {
		err := filepath.WalkDir(filepath.Join(repository, filepath.FromSlash(dir)), func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				return fmt.Errorf("read our code: %w", err)
			}
			base := d.Name()
			if d.IsDir() {
				if strings.HasSuffix(base, "test") || base == "testdata" {
					return filepath.SkipDir
				}
				return nil
			}
			if !strings.HasSuffix(base, ".go") || strings.HasSuffix(base, "_test.go") {
				return nil
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				return fmt.Errorf("read our code: %w", err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if s, err := strconv.Unquote(lit.Value); err == nil {
						all[s] = true
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}
