//go:build pool

package addresses

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLocalName: the startd gives starters of a slot type a local name, as in -local-name slot_type_1, and with it settings and a log of
// their own. Both starters write the same files, with and without the lines of D_FULLDEBUG.
func TestLocalName(t *testing.T) {
	w := newPool(t, map[string]string{"both": ""})
	for i, tt := range []struct {
		name, knobs, log string
		debug            bool
	}{
		{name: "the log of all starters", log: "StarterLog.slot1_1"},
		{name: "a log of its own", knobs: "slot_type_1.STARTER_LOG = $(LOG)/Typed", log: "Typed.slot1_1"},
		{name: "the log of another type", knobs: "slot_type_2.STARTER_LOG = $(LOG)/Typed", log: "StarterLog.slot1_1"},
		{name: "its name is not the slot's", knobs: "STARTER_LOG_NAME_APPEND = False", log: "SlotType1Log"},
		{name: "a log of its own whose name is not the slot's", knobs: "STARTER_LOG_NAME_APPEND = False\nslot_type_1.STARTER_LOG = $(LOG)/Typed", log: "Typed"},
		{name: "more lines", knobs: "slot_type_1.STARTER_DEBUG = D_FULLDEBUG", log: "StarterLog.slot1_1", debug: true},
		{name: "more lines for another type", knobs: "slot_type_2.STARTER_DEBUG = D_FULLDEBUG", log: "StarterLog.slot1_1"},
		{name: "fewer lines", knobs: "STARTER_DEBUG = D_FULLDEBUG\nslot_type_1.STARTER_DEBUG = D_ALWAYS", log: "StarterLog.slot1_1"},
	} {
		for _, side := range []string{"stock", "ours"} {
			t.Run(tt.name+"/"+side, func(t *testing.T) {
				t.Parallel()
				ep := fmt.Sprintf("ep%d%s", i, side)
				w.executionPoint(t, ep, "46p", "SLOT_TYPE_1 = 100%\nSLOT_TYPE_1_PARTITIONABLE = True\nNUM_SLOTS_TYPE_1 = 1\n"+tt.knobs, side == "ours")
				defer func() { _, _ = w.as(t.Context(), ep, ep, "condor_off", "-master", "-fast") }()
				w.submit(t, "both", ep, at(ep))
				w.running(t, "both", ep)
				w.goOn(t, "both", ep)
				w.ended(t, "both", ep)
				if diff := cmp.Diff([]string{tt.log}, w.logs(t, ep)); diff != "" {
					t.Errorf("logs of starters (-want +got):\n%s", diff)
				}
				text := w.read(ep, "log", tt.log)
				if debug := strings.Contains(text, "D_ALWAYS:2"); debug != tt.debug {
					t.Errorf("lines of D_FULLDEBUG: %v, want %v:\n%s", debug, tt.debug, text)
				}
			})
		}
	}
}

// others are files in the directory of logs that no starter of a job writes.
var others = []string{"MasterLog", "ProcLog", "SharedPortLog", "StartLog", "StarterLog.testing", "XferStatsLog", "output", "startd_history", "transfer_history"}

// logs are the logs of starters.
func (w *world) logs(t *testing.T, ep string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(w.site, ep, "log"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), ".") && !slices.Contains(others, e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names
}
