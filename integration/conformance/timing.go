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

// lateRatio is how many times as long one side may wait than the other, beyond the time
// that the step expects, before it counts as late. A claim may have to wait for the next
// negotiation besides, and a job for the claim of another case: [World.Grace].
const lateRatio = 3

// What is said of a wait.
const (
	inTime = "in time"
	isLate = "late"
)

// judged says what a wait is beside that of the other side. Only too early is judged by
// the clock, since no load makes time pass faster.
func (w Waited) judged(other Waited, grace time.Duration) string {
	switch {
	case w.Took < w.About*3/4:
		return fmt.Sprintf("too soon: before %s have passed", w.About)
	case w.Took-w.About > lateRatio*max(0, other.Took-other.About)+grace:
		return isLate
	}
	return inTime
}

// Waits compares how long the steps have waited. A side that did not wait long enough
// is a difference even if the other did neither.
func Waits(name string, stock, ours map[string]Waited, grace time.Duration) []Difference {
	var found []Difference
	for _, step := range slices.Sorted(maps.Keys(ours)) {
		d := Difference{Case: name, In: InTiming, Name: step, Stock: stock[step].judged(ours[step], grace), Ours: ours[step].judged(stock[step], grace)}
		if d.Stock != inTime || d.Ours != inTime {
			found = append(found, d)
		}
	}
	return found
}
