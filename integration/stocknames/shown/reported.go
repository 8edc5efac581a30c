package shown

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"podstarter/integration/stocknames/cppnames"
)

// EachCase stands for all conformance cases: they compare the ads of the job's history.
const EachCase = "each case"

// ofJob are attributes of which one is in each update of a job, and in no other ad.
var ofJob = []string{"ScratchDirFileCount = ", "JobDuration = "}

// Reported are the attributes that a starter sends in updates of a job, by the recorded streams in the directory (testdata/streams). They
// get into the job's history.
func Reported(dir string, names []Name) (map[Name]bool, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("list the recorded streams in %s: %w", dir, err)
	}
	x, found := newIndex(names), map[Name]bool{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read recorded streams: %w", err)
		}
		for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
			var packet struct{ Way, Data string }
			if err := json.Unmarshal([]byte(line), &packet); err != nil {
				return nil, fmt.Errorf("read the recorded stream %s, line %d: %w", path, i+1, err)
			}
			if packet.Way != "out" || !strings.Contains(packet.Data, ofJob[0]) && !strings.Contains(packet.Data, ofJob[1]) {
				continue
			}
			for _, n := range x.assigned(cppnames.Attribute, strings.ReplaceAll(packet.Data, "·", "\n")) {
				found[n] = true
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("no recorded stream in %s has an update of a job", dir)
	}
	return found, nil
}
