//go:build pool

package e2e

import (
	_ "embed"
	"strings"
	"testing"
)

//go:embed testdata/commonfiles.sh
var commonFilesPool string

// TestCommonFilesWithoutRoot: an execution point without a pod and root keeps common files, as under the stock starter. There, a job
// changes them for the jobs after it. Under ours, each job gets what came from the access point.
func TestCommonFilesWithoutRoot(t *testing.T) {
	stock, ours := besideStock(t, commonFilesPool)
	printed := map[string]map[string]string{"stock": stock, "ours": ours}
	for title, want := range map[string]map[string]string{
		"stock": {"offered": "2 Hardlink", "job 0": "as it was\nchanged one\n", "job 1": "poison   \n", "job 2": "poison   \n"},
		"ours":  {"offered": "2 Copy", "job 0": "as it was\nchanged one\nchanged one\n", "job 1": "as it was\n", "job 2": "as it was\n", "log": "it is not what was kept"},
	} {
		got := printed[title]
		for section, text := range want {
			if !strings.Contains(got[section], text) {
				t.Errorf("%s: %s lacks %q:\n%s\n%s", title, section, text, got[section], got["log"])
			}
		}
	}
	if times := stock["stagings"]; strings.TrimSpace(times) != "1" {
		t.Errorf("stock fetched the files %q times", times)
	}
}
