package attacks

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the generated part of docs/threats.md")

// root is the top of the project.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestChanges: each snippet is there exactly once, alone and beside the others of
// a setting, and what comes of it compiles.
func TestChanges(t *testing.T) {
	for _, d := range Defences {
		if _, err := writeOverlay(root(t), t.TempDir(), d.Changes); err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
	}
	for _, s := range Settings {
		for program, folder := range programFolders {
			overlay, err := writeOverlay(root(t), t.TempDir(), changes(program, s.off()))
			if err != nil {
				t.Errorf("%s: %v", s.Name, err)
				continue
			}
			// Compiles, but does not link.
			compile := goCommand(t.Context(), root(t), "list", "-trimpath", "-export", "-f", "{{.Export}}", "-overlay", overlay, folder)
			if out, err := compile.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", s.Name, err, out)
			}
		}
	}
}

// TestEveryDefenceMatters: the settings show of each attack that it gets through,
// and of each defence against it that it alone holds the attack off, all others
// of the same list being off.
func TestEveryDefenceMatters(t *testing.T) {
	used := map[string]bool{}
	for _, a := range Attacks {
		for _, list := range a.Falls {
			if !slices.ContainsFunc(Settings, func(s Setting) bool {
				others := slices.ContainsFunc(a.Falls, func(other []string) bool {
					return !slices.Equal(other, list) && subset(other, s.off())
				})
				return a.tries(s) && subset(list, s.off()) && !others
			}) {
				t.Errorf("%s: no setting shows that it gets through without %q, and nothing else off that would let it", a.Name, list)
			}
			for _, name := range list {
				used[name] = true
				others := slices.DeleteFunc(slices.Clone(list), func(n string) bool { return n == name })
				if !slices.ContainsFunc(Settings, func(s Setting) bool {
					return a.tries(s) && subset(others, s.off()) && !slices.Contains(s.off(), name) && !a.falls(s.off())
				}) {
					t.Errorf("%s: no setting shows that %q alone holds it off, without %q", a.Name, name, others)
				}
			}
		}
	}
	for _, d := range Defences {
		if !used[d.Name] {
			t.Errorf("no attack meets the defence %q", d.Name)
		}
	}
}

// TestMissingSnippet: a change that does not fit is an error.
func TestMissingSnippet(t *testing.T) {
	for _, old := range []string{"no such thing", "package"} {
		change := Change{File: "integration/attacks/table_test.go", Old: old + "!"}
		if old == "package" {
			change.Old = "func Test" // more than once
		}
		if _, err := writeOverlay(root(t), t.TempDir(), []Change{change}); err == nil || !strings.Contains(err.Error(), "not once") {
			t.Errorf("%q: %v", change.Old, err)
		}
	}
}

func TestThreatsPage(t *testing.T) {
	const path = "../../docs/threats.md"
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page, err := replaceTables(string(old))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(old), page); diff != "" {
		t.Errorf("the page is not what the tables say; write it with: go test ./integration/attacks -run TestThreatsPage -update\n%s", diff)
	}
}
