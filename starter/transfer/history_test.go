package transfer_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"podstarter/condor/condortest"
	"podstarter/sandbox/filetransfer"
	"podstarter/sandbox/jobfiles"
)

// TestHistory is the log of transfers: whole records that say whose they are, with
// attributes in order and without secrets, and a new file when the old one is large.
func TestHistory(t *testing.T) {
	path, knobs := historyFile(t)
	plugin := sitePlugin(t, `echo '[ TransferSuccess = true; TransferTotalBytes = 4; extra = [ bb = 1; a = 2 ]; ClaimId = "secret"; Extra2 = 1 ]' >"$4"; echo text >"`+`$(sed -n 's/.*LocalFileName = "\([^"]*\)".*/\1/p' "$2")"`)
	maps.Copy(knobs, plugin)
	o := setup{job: `Owner = "alice"`, knobs: knobs, items: []condortest.Item{{Command: condortest.ItemURL, Name: "file", URL: "x://host/file"}}}
	f, _, _ := open(t, o)
	must(t, f.Fetch(t.Context()))
	text, err := os.ReadFile(path)
	must(t, err)
	const record = `***
Extra2 = 1
JobClusterId = 7
JobOwner = "alice"
JobProcId = 0
PluginExitCode = 0
TransferSuccess = true
TransferTotalBytes = 4
extra = [ a = 2; bb = 1 ]
`
	if diff := cmp.Diff(record, string(text)); diff != "" {
		t.Error(diff)
	}
	size := int64(5_000_001)
	must(t, os.Truncate(path, size))
	must(t, f.Fetch(t.Context()))
	if next, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(next), "***\n") {
		t.Errorf("%.80q, %v", next, err)
	}
	if st, err := os.Stat(path + ".old"); err != nil || st.Size() != size {
		t.Errorf("%v, %v", st, err)
	}
	if st, err := os.Stat(path); err != nil || os.Getuid() == 0 && st.Sys().(*syscall.Stat_t).Uid != 4717 {
		t.Errorf("it is not HTCondor's: %v, %v", st, err)
	}
	// A link is not followed, and the job goes on.
	must(t, os.Remove(path))
	must(t, os.Symlink(path+".target", path))
	must(t, f.Fetch(t.Context()))
	if _, err := os.Stat(path + ".target"); err == nil {
		t.Error("a link was followed")
	}
}

// historyFile is where the log of transfers goes, and the knobs for it.
func historyFile(t *testing.T) (path string, knobs map[string]string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "history")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) //nolint:forbidigo // made here
	must(t, os.Chmod(dir, 0o777))               //nolint:forbidigo // as above
	path = filepath.Join(dir, "transfer_history")
	return path, map[string]string{"FILE_TRANSFER_STATS_LOG": path, "CONDOR_IDS": "4717.4717"} // for a pilot with root
}

// TestHistoryOfOutput: what a plugin says of output is in the log of transfers when it has been
// sent.
// TestHistoryIsNotForged: nothing that a plugin reports becomes another record, or another attribute of one.
func TestHistoryIsNotForged(t *testing.T) {
	path, knobs := historyFile(t)
	report := `[ TransferSuccess = true; Good = "fine"; '*** JobOwner' = "victim"; 'a=b' = 1; ' x' = 2; S = "x\n***\nJobClusterId = 666\n"; R = MY.'w\n***\nJobOwner = "victim"\nq'; '-' = 3 ]`
	plugin := sitePlugin(t, "cat >\"$4\" <<'END'\n"+report+"\nEND\n"+`echo text >"$(sed -n 's/.*LocalFileName = "\([^"]*\)".*/\1/p' "$2")"`)
	maps.Copy(knobs, plugin)
	o := setup{job: `Owner = "alice"`, knobs: knobs, items: []condortest.Item{{Command: condortest.ItemURL, Name: "file", URL: "x://host/file"}}}
	f, _, _ := open(t, o)
	must(t, f.Fetch(t.Context()))
	text, err := os.ReadFile(path)
	must(t, err)
	const record = `***
Good = "fine"
JobClusterId = 7
JobOwner = "alice"
JobProcId = 0
PluginExitCode = 0
S = "x *** JobClusterId = 666"
TransferSuccess = true
`
	if diff := cmp.Diff(record, string(text)); diff != "" {
		t.Error(diff)
	}
}

func TestHistoryOfOutput(t *testing.T) {
	path, knobs := historyFile(t)
	maps.Copy(knobs, sitePlugin(t, `echo '[ TransferSuccess = true; TransferUrl = "x://host/made"; TransferFileName = "made" ]' >"$4"`))
	f, _, o := open(t, setup{job: "TransferOutput = \"made\"\nTransferOutputRemaps = \"made=x://host/made\"", knobs: knobs})
	must(t, o.Sandbox.WriteFile("made", []byte("result"), 0o600))
	must(t, f.Send(t.Context(), filetransfer.Upload{Kind: jobfiles.Output}))
	text, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(text), "***\n") || !strings.Contains(string(text), "\nTransferUrl = \"x://host/made\"\n") {
		t.Errorf("%q, %v", text, err)
	}
}
