//go:build pool

package attacks

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"podstarter/integration/harness"
)

// privateDirectory is where starters note what they know of containers.
const privateDirectory = "/run/podstarter/private"

// awaitSpares waits until there is a container made ahead for the attacker, and one for each
// spare: those it has to leave alone.
func (w *target) awaitSpares(t *testing.T) {
	t.Helper()
	if w.pod.Spares == 0 {
		return
	}
	var fresh []string
	err := harness.Poll(soon(t, patience), fmt.Sprintf("%d containers made ahead", w.pod.Spares+1), func() (bool, error) {
		fresh = nil
		for _, name := range w.containers() {
			text, err := os.ReadFile(w.visible(t, privateDirectory+"/slot."+name+".json"))
			if os.IsNotExist(err) {
				continue
			}
			if err != nil {
				return false, err
			}
			var known struct{ Fresh bool }
			if err := json.Unmarshal(text, &known); err != nil {
				return false, err
			}
			if known.Fresh {
				fresh = append(fresh, name)
			}
		}
		return len(fresh) > w.pod.Spares, nil
	})
	if err != nil {
		t.Fatalf("%v; there are %q", err, fresh)
	}
}
