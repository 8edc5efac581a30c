package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
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
		Execute: `STARTER_INITIAL_UPDATE_INTERVAL = 8
STARTER_UPDATE_INTERVAL = 300
UPDATE_INTERVAL = 300
POD_STARTER_MAX_REST = 300
KILLING_TIMEOUT = 30
`,
		Submit: `NEGOTIATOR_INTERVAL = 60
NEGOTIATOR_CYCLE_DELAY = 20
NEGOTIATOR_MIN_INTERVAL = 5
SCHEDD_INTERVAL = 300
SHADOW_QUEUE_UPDATE_INTERVAL = 900
SHADOW_CHECKPROXY_INTERVAL = 600
`,
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
