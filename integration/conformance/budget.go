package conformance

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"podstarter/integration/harness"
	"podstarter/integration/turn"
)

// A Budget is the time in which cases may begin. A machine of the slow kind needs an hour for all of
// them; it runs some in each run, others in the next, and says which it left out.
type Budget struct {
	For time.Duration // none if zero
	Now func() time.Time

	mu    sync.Mutex
	began time.Time
	left  []string
}

// Order puts the cases into the order in which they begin. With a budget, those of the first subject
// come first, and then, of all others, the parts in turn, each hour beginning with the next.
func (b *Budget) Order(cases []Case) []Case {
	if b.For == 0 {
		return cases
	}
	at := turn.At(b.Now())
	place := func(c Case) int {
		if basic(c.Name) {
			return -1
		}
		return int(turn.Of(c.Name)-at+turn.Parts) % turn.Parts
	}
	ordered := slices.Clone(cases)
	slices.SortStableFunc(ordered, func(a, b Case) int { return place(a) - place(b) })
	return ordered
}

// basic says whether the case of this name is of the first subject.
func basic(name string) bool {
	return slices.ContainsFunc(basicCases, func(c Case) bool { return c.Name == name })
}

// Begins says whether a case may begin, and notes which may not. Those of the first subject always may: cases wait for a slot in
// no certain order.
func (b *Budget) Begins(name string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.began.IsZero() {
		b.began = b.Now()
	}
	if b.For > 0 && b.Now().Sub(b.began) >= b.For && !basic(name) {
		b.left = append(b.left, name)
		return false
	}
	return true
}

// Left gives the names of the cases that did not begin.
func (b *Budget) Left() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(slices.Values(b.left))
}

// noteLeft appends to the file, if there is one, which cases did not begin in time.
func noteLeft(path string, k harness.Kind, b *Budget, names []string) error {
	if len(names) == 0 {
		return nil
	}
	return note(path, fmt.Sprintf("conformance, HTCondor %s: %d did not begin within the %s that a run has for them: %s\n", k, len(names), b.For, strings.Join(names, ", ")))
}
