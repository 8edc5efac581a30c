package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"podstarter/integration/harness"
)

// World is what is otherwise for all cases of a run. Versions, modes and slots come
// with the pool.
type World struct {
	Execute, Submit string // lines of configuration, which win over all setups
	// Patience is how many times as long cases may take.
	Patience int
	// Grace is how much longer one side may wait than the other for a claim.
	Grace time.Duration
}

// worlds by the name that the flag -world has.
var worlds = map[string]World{
	"": {Patience: 1, Grace: 10 * time.Second},
	// HTCondor's own intervals, and podstarter's, as a site has them that sets none.
	"defaults": {
		Execute: harness.DefaultsExecute, Submit: harness.DefaultsSubmit,
		Patience: 5, Grace: 90 * time.Second,
	},
}

// WorldNamed returns the world that the flag names.
func WorldNamed(name string) (World, error) {
	w, ok := worlds[name]
	if !ok {
		names := slices.DeleteFunc(slices.Sorted(maps.Keys(worlds)), func(name string) bool { return name == "" })
		return w, fmt.Errorf("there is no world %q; there are %s", name, strings.Join(names, ", "))
	}
	return w, nil
}
