package shown

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"podstarter/integration/stocknames/cppnames"
)

// Test is a Go test.
type Test struct {
	Package string // directory below the repository, with slashes
	Name    string
}

// leftOut are directories whose tests are about the tests themselves, or about these lists.
var leftOut = []string{"integration/stocknames", "integration/conformance", "integration/runtests", "mutants", "docs", "release", ".git"}

// Tests are all tests of the repository, with the strings in each and in the tables that only it uses.
func Tests(repository string) (map[Test][]string, error) {
	packages := map[string][]*ast.File{}
	err := filepath.WalkDir(repository, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return fmt.Errorf("read the tests: %w", err)
		}
		rel, err := filepath.Rel(repository, path)
		if err != nil {
			return fmt.Errorf("name %s: %w", path, err)
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if slices.Contains(leftOut, rel) || d.Name() == "testdata" || d.Name() == ".state" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return fmt.Errorf("read the tests: %w", err)
		}
		dir := filepath.ToSlash(filepath.Dir(rel))
		packages[dir] = append(packages[dir], f)
		return nil
	})
	if err != nil {
		return nil, err
	}
	all := map[Test][]string{}
	for dir, files := range packages {
		maps.Copy(all, testsOf(dir, files))
	}
	return all, nil
}

// testsOf are the tests of one package.
func testsOf(dir string, files []*ast.File) map[Test][]string {
	all := map[Test][]string{}
	tables := map[string][]string{} // strings of variables and constants of the package
	users := map[string][]Test{}
	for _, f := range files {
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range g.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok {
					for _, name := range v.Names {
						tables[name.Name] = append(tables[name.Name], literals(v)...)
					}
				}
			}
		}
	}
	for _, f := range files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") || fn.Name.Name == "TestMain" {
				continue
			}
			t := Test{dir, fn.Name.Name}
			all[t] = literals(fn)
			ast.Inspect(fn, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && tables[id.Name] != nil && !slices.Contains(users[id.Name], t) {
					users[id.Name] = append(users[id.Name], t)
				}
				return true
			})
		}
	}
	for table, by := range users {
		if len(by) == 1 {
			all[by[0]] = append(all[by[0]], tables[table]...)
		}
	}
	return all
}

// literals are the strings in a piece of Go, those that are keys of a map as KEY =.
func literals(in ast.Node) []string {
	var all []string
	unquote := func(e ast.Expr) (string, bool) {
		lit, ok := e.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return "", false
		}
		s, err := strconv.Unquote(lit.Value)
		return s, err == nil
	}
	ast.Inspect(in, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			if s, ok := unquote(n.Key); ok {
				all = append(all, s+" =")
			}
		case *ast.BasicLit:
			if s, ok := unquote(n); ok {
				all = append(all, s)
			}
		}
		return true
	})
	return all
}

// ByTests are the tests that name a name, in order.
func ByTests(tests map[Test][]string, names []Name) map[Name][]Test {
	x := newIndex(names)
	found := map[Name][]Test{}
	for t, texts := range tests {
		for _, text := range texts {
			for _, n := range slices.Concat(x.named(cppnames.Knob, text), x.named(cppnames.Attribute, text)) {
				if !slices.Contains(found[n], t) {
					found[n] = append(found[n], t)
				}
			}
		}
	}
	for _, by := range found {
		slices.SortFunc(by, func(a, b Test) int {
			return cmp.Or(cmp.Compare(end(a), end(b)), cmp.Compare(a.Package, b.Package), cmp.Compare(a.Name, b.Name))
		})
	}
	return found
}

// end puts tests with a real pool before others.
func end(t Test) int {
	if strings.HasPrefix(t.Package, "integration/") {
		return 0
	}
	return 1
}
