package docs

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// The page says of each setting of the provisioner that many sites come from what
// becomes of it, and of no other.
func TestSettingsOfTheOriginal(t *testing.T) {
	list, err := os.ReadFile("testdata/prp-htcondor-portal.txt")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("admin/provisioner.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## From prp-htcondor-portal\n")
	table, _, _ = strings.Cut(table, "\n## ")
	var told []string
	for line := range strings.Lines(table) {
		if key, ok := strings.CutPrefix(line, "| `"); ok {
			key, _, _ = strings.Cut(key, "`")
			told = append(told, key)
		}
	}
	known := 0
	for line := range strings.Lines(string(list)) {
		key := strings.TrimSpace(line)
		if strings.HasPrefix(key, "#") {
			continue
		}
		known++
		if !slices.Contains(told, key) {
			t.Errorf("the page does not say what becomes of %s", key)
		}
	}
	if known < 30 || known != len(told) {
		t.Errorf("the page has %d settings, and the list %d", len(told), known)
	}
}
