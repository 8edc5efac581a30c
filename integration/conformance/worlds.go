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
	// Users submit the cases, in turn; empty for the pool's one user.
	Users []string
	// Patience is how many times as long cases may take.
	Patience int
	// Grace is how much longer one side may wait than the other for a claim.
	Grace time.Duration
}

// worlds by the name that the flag -world has.
var worlds = map[string]World{
	"": {Patience: 1, Grace: 10 * time.Second},
	// Many users share a site, and each of them has a claim to its slots: jobs of one
	// cannot use the claims of another.
	"users": {Users: []string{"alice", "bob", "carol"}, Patience: 2, Grace: 20 * time.Second},
	// HTCondor's own intervals, and podstarter's, as a site has them that sets none.
	"defaults": {
		Execute: harness.DefaultsExecute, Submit: harness.DefaultsSubmit,
		Patience: 5, Grace: 90 * time.Second,
	},
}

// UserOf is who submits a case: the same user in every run of the world, whatever other
// cases run. It is empty for the pool's one user.
func (w World) UserOf(name string) string {
	i := slices.IndexFunc(Cases(), func(c Case) bool { return c.Name == name })
	if len(w.Users) == 0 || i < 0 {
		return ""
	}
	return w.Users[i%len(w.Users)]
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
