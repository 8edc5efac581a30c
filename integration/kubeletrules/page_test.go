package kubeletrules

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the tables of docs/developer/kubelet-rules.md")

// elsewhere are rules whose tests need a starter, or no cluster: package, test, rule,
// source, and what relies on the rule.
var elsewhere = [][5]string{
	{"e2e", "TestMountOrders", "In whatever order a runtime mounts a container's volumes, an image's links do not lead one over the wrapper.",
		"containerd internal/cri/opts/spec_opts.go:orderedMounts; CRI-O server, orderedMounts (both by depth)", "the wrapper is mounted over a file of /proc, docs/developer/threats.md"},
	{"e2e", "TestOutOfMemory", "A container that ran into its memory limit shows the reason OOMKilled.",
		"containerd internal/cri/server, events.go; kuberuntime/kuberuntime_container.go", "`k8sexec/container.go:autopsy`"},
	{"podfailures", "TestFailures", "The kubelet's, the runtime's and the registry's words for each failure.",
		"images/types.go; kuberuntime; containerd", "`k8sexec/verdict`, docs/operator/failures.md"},
}

// ruleIn is the row of the test with this comment.
func ruleIn(test, comment string) (string, error) {
	var rule, source, relies string
	for _, part := range strings.Split(strings.TrimSpace(comment), "\n\n") {
		part = strings.ReplaceAll(part, "\n", " ")
		if text, ok := strings.CutPrefix(part, "Source: "); ok {
			source = text
		} else if text, ok := strings.CutPrefix(part, "Relies: "); ok {
			relies = text
		} else if rule == "" {
			rule = part
		} else {
			return "", fmt.Errorf("%s: the comment has a part that is neither rule nor source nor what relies on it: %q", test, part)
		}
	}
	for name, text := range map[string]string{"the rule": rule, "its source (Source:)": source, "what relies on it (Relies:)": relies} {
		if text == "" {
			return "", fmt.Errorf("%s: the comment does not say %s", test, name)
		}
	}
	return row(rule, "`"+test+"`", source, relies), nil
}

func row(cells ...string) string {
	for i, c := range cells {
		c = strings.TrimSuffix(strings.ReplaceAll(c, "|", `\|`), ".")
		// Pages are named by their path in comments.
		for _, word := range strings.Fields(c) {
			word = strings.Trim(word, ",;.")
			if name, ok := strings.CutPrefix(word, "docs/"); ok {
				name = strings.TrimPrefix(name, "developer/")
				if name != strings.TrimPrefix(word, "docs/developer/") {
					name = "../" + name
				}
				title := strings.TrimSuffix(filepath.Base(name), ".md")
				c = strings.ReplaceAll(c, word, fmt.Sprintf("[%s](%s)", strings.ReplaceAll(title, "-", " "), name))
			}
		}
		cells[i] = c
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

// testsIn are the tests of a folder that need a pool, with their comments, in the order
// of files and lines.
func testsIn(t *testing.T, dir string) (names []string, comments map[string]string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	comments = map[string]string{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if len(file.Comments) == 0 || file.Comments[0].List[0].Text != "//go:build pool" {
			continue
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if ok && strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain" {
				names = append(names, f.Name.Name)
				comments[f.Name.Name] = f.Doc.Text()
			}
		}
	}
	return names, comments
}

// TestRulesPage: each test says its rule, and the page has them all.
func TestRulesPage(t *testing.T) {
	head := row("rule", "test", "source", "what relies on it") + "| --- | --- | --- | --- |\n"
	here, others := head, head
	names, comments := testsIn(t, ".")
	if len(names) == 0 {
		t.Fatal("no tests are found")
	}
	for _, name := range names {
		line, err := ruleIn(name, comments[name])
		if err != nil {
			t.Error(err)
		}
		here += line
	}
	for _, e := range elsewhere {
		if _, known := testsIn(t, filepath.Join("..", e[0])); known[e[1]] == "" {
			t.Errorf("integration/%s has no test %s with a comment", e[0], e[1])
		}
		others += row(e[2], "`"+e[0]+"` `"+e[1]+"`", e[3], e[4])
	}
	page := filepath.Join("..", "..", "docs", "developer", "kubelet-rules.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	const mark = "<!-- from the comments of the tests: go -C integration test ./kubeletrules -run TestRulesPage -update -->\n"
	intro, _, ok := strings.Cut(string(text), mark)
	if !ok {
		t.Fatalf("%s has no line %s", page, mark)
	}
	want := intro + mark + "\n" + here + "\nRules whose tests need a starter, or no cluster:\n\n" + others
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("the page does not match the tests' comments; write it with -update\n%s", diff)
	}
}

// TestRuleIn: a comment that lacks a part is refused.
func TestRuleIn(t *testing.T) {
	for _, tt := range []struct{ comment, want, err string }{
		{"A rule\nof two lines.\n\nSource: a.go:f.\n\nRelies: docs/developer/turnover.md, docs/operator/failures.md.\n",
			"| A rule of two lines | `T` | a.go:f | [turnover](turnover.md), [failures](../operator/failures.md) |\n", ""},
		{"A rule.\n\nSource: a.\n", "", "T: the comment does not say what relies on it (Relies:)"},
		{"A rule.\n\nRelies: a.\n", "", "T: the comment does not say its source (Source:)"},
		{"Source: a.\n\nRelies: a.\n", "", "T: the comment does not say the rule"},
		{"A rule.\n\nMore.\n", "", `T: the comment has a part that is neither rule nor source nor what relies on it: "More."`},
	} {
		got, err := ruleIn("T", tt.comment)
		said := ""
		if err != nil {
			said = err.Error()
		}
		if got != tt.want || said != tt.err {
			t.Errorf("%q: %q, error %q; want %q, %q", tt.comment, got, said, tt.want, tt.err)
		}
	}
}
