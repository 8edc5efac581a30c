package conformance

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Waited is how long a step has waited since something was last done to the job, and
// how long it should.
type Waited struct {
	Took, About time.Duration
}

// lateRatio is how many times as long our side may wait as the stock starter's, beyond the time
// that the step expects, before it counts as late. A claim may have to wait for the next
// negotiation besides, and a job for the claim of another case: [World.Grace].
const lateRatio = 3

// What is said of a wait.
const (
	inTime = "in time"
	isLate = "late"
)

// early says whether a wait was too short. Only that is judged by the clock, since no load
// makes time pass faster.
func (w Waited) early() string {
	if w.Took < w.About*3/4 {
		return fmt.Sprintf("too soon: before %s have passed", w.About)
	}
	return inTime
}

// Waits compares how long the steps have waited. Our side may not be late beside the stock
// starter's. A side that did not wait long enough is a difference even if the other did
// neither.
func Waits(name string, stock, ours map[string]Waited, grace time.Duration) []Difference {
	var found []Difference
	for _, step := range slices.Sorted(maps.Keys(ours)) {
		a, b := stock[step], ours[step]
		d := Difference{Case: name, In: InTiming, Name: step, Stock: a.early(), Ours: b.early()}
		if b.Took-b.About > lateRatio*max(0, a.Took-a.About)+grace {
			d.Ours = isLate
		}
		if d.Stock != inTime || d.Ours != inTime {
			found = append(found, d)
		}
	}
	return found
}
