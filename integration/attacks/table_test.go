package attacks

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/integration/harness"
)

var update = flag.Bool("update", false, "write the generated part of docs/developer/threats.md")

// root is the top of the project.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestChanges: each snippet occurs exactly once, alone and together with the others of a
// setting, and the result compiles.
func TestChanges(t *testing.T) {
	for _, d := range Defences {
		if _, err := writeOverlay(root(t), t.TempDir(), d.Changes); err != nil {
			t.Errorf("%s: %v", d.Name, err)
		}
	}
	for _, mode := range Modes {
		for _, s := range settingsOf(mode) {
			for program, folder := range programFolders {
				overlay, err := writeOverlay(root(t), t.TempDir(), changes(program, s.off(mode)))
				if err != nil {
					t.Errorf("%s, %s: %v", mode, s.Name, err)
					continue
				}
				// Compiles, but does not link.
				compile := goCommand(t.Context(), root(t), "list", "-trimpath", "-export", "-f", "{{.Export}}", "-overlay", overlay, folder)
				if out, err := compile.CombinedOutput(); err != nil {
					t.Errorf("%s, %s: %v\n%s", mode, s.Name, err, out)
				}
			}
		}
	}
}

// TestEveryDefenceMatters: for each attack and mode, the settings show that it gets
// through, and for each defence against it that this defence alone stops the attack when
// all others of the same way are off.
func TestEveryDefenceMatters(t *testing.T) {
	for _, mode := range Modes {
		t.Run(string(mode), func(t *testing.T) { everyDefenceMatters(t, mode) })
	}
}

func everyDefenceMatters(t *testing.T, mode Mode) {
	used := map[string]bool{}
	for _, a := range Attacks {
		if !in(mode, a.In) {
			continue
		}
		ways := a.waysIn(mode)
		if len(ways) == 0 {
			t.Errorf("%s: the attack has no way to get through", a.Name)
		}
		for _, w := range ways {
			shown := settingsThatShow(mode, a, w)
			without := w.of(mode)
			if len(without) == 0 {
				t.Errorf("%s: none of %q stops it", a.Name, w.Without)
			}
			if !slices.ContainsFunc(shown, func(off []string) bool {
				others := slices.ContainsFunc(ways, func(other Way) bool {
					return !slices.Equal(other.of(mode), without) && subset(other.of(mode), off)
				})
				return subset(without, off) && !others
			}) {
				t.Errorf("%s: no setting shows that it gets through without %q while every other way is closed", a.Name, without)
			}
			for _, name := range without {
				used[name] = true
				others := slices.DeleteFunc(slices.Clone(without), func(n string) bool { return n == name })
				if !slices.ContainsFunc(shown, func(off []string) bool {
					return subset(others, off) && !slices.Contains(off, name) && !a.falls(mode, off)
				}) {
					t.Errorf("%s: no setting shows that %q alone stops it, without %q", a.Name, name, others)
				}
			}
		}
	}
	for _, d := range Defences {
		if in(mode, d.In) && !used[d.Name] {
			t.Errorf("no attack meets the defence %q", d.Name)
		}
	}
}

// TestGuestSettings: for each attack that one of the node's defences holds off, one of the
// settings for a guest lets it through, and another one does not; none of them is superfluous.
func TestGuestSettings(t *testing.T) {
	lacks := func(settings []Setting) (attacks []string) {
		for _, a := range Attacks {
			shown := map[bool]bool{}
			for _, s := range settings {
				if a.tries(s, guestMode) {
					shown[a.falls(guestMode, s.off(guestMode))] = true
				}
			}
			if in(guestMode, a.In) && a.byNode(guestMode) && len(shown) < 2 {
				attacks = append(attacks, a.Name)
			}
		}
		return attacks
	}
	settings := chosenSettings(guestMode, true)
	if got := lacks(settings); len(got) > 0 {
		t.Errorf("no setting shows that they get through, or none that they do not: %q", got)
	}
	for i, s := range settings {
		if len(lacks(slices.Delete(slices.Clone(settings), i, i+1))) == 0 {
			t.Errorf("%q is superfluous", s.Name)
		}
	}
}

// settingsThatShow are what is off in the settings that try the attack. The settings of
// mode shared also show how it gets through where processes are seen, if the way is the
// same there.
func settingsThatShow(mode Mode, a Attack, w Way) (shown [][]string) {
	for _, s := range settingsOf(mode) {
		if a.tries(s, mode) {
			shown = append(shown, s.off(mode))
		}
	}
	if in(harness.Shared, w.In) && slices.Contains(w.of(mode), Namespace) {
		for _, s := range settingsOf(harness.Shared) {
			if a.tries(s, harness.Shared) {
				shown = append(shown, append(s.off(harness.Shared), Namespace))
			}
		}
	}
	return shown
}

// TestMissingSnippet: a change that does not fit is an error.
func TestMissingSnippet(t *testing.T) {
	for _, old := range []string{"no such thing", "package"} {
		change := Change{File: "integration/attacks/table_test.go", Old: old + "!"}
		if old == "package" {
			change.Old = "func Test" // more than once
		}
		if _, err := writeOverlay(root(t), t.TempDir(), []Change{change}); err == nil || !strings.Contains(err.Error(), "want once") {
			t.Errorf("%q: %v", change.Old, err)
		}
	}
}

func TestThreatsPage(t *testing.T) {
	const path = "../../docs/developer/threats.md"
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
		t.Errorf("the page does not match the tables; write it with: go -C integration test ./attacks -run TestThreatsPage -update\n%s", diff)
	}
}
