package podfailures

import (
	"fmt"
	"regexp"

	"podstarter/integration/harness"
)

// Outcome is what the event log says of the first end of a job, or of its first run.
type Outcome struct {
	Kind          string // held, requeued, evicted, lost, exit, signal, removed
	Code, Subcode int
	Words         string
}

// String is "held 35/2" or "exit 0".
func (o Outcome) String() string {
	switch o.Kind {
	case "exit", "signal":
		return fmt.Sprintf("%s %d", o.Kind, o.Code)
	case lost:
		return lost
	}
	return fmt.Sprintf("%s %d/%d", o.Kind, o.Code, o.Subcode)
}

// vacateBase is the first code that gives a job back to the queue (condor_holdcodes.h).
const vacateBase = 1000

var codes = regexp.MustCompile(`Code (-?\d+) Subcode (-?\d+)`)

// lost is the kind of a job whose starter ended without a word: its shadow waited for the lease.
const lost = "lost"

// OutcomeOf reads it from the events; ok is false while there is none.
func OutcomeOf(events []harness.Event) (o Outcome, ok bool) {
	for _, e := range events {
		o = Outcome{Words: e.Text()}
		switch e.Number {
		case harness.EventRemoteError:
			o.Kind = "requeued"
		case harness.EventEvicted:
			o.Kind = "evicted"
		case harness.EventReconnectFailed:
			o.Kind = lost
		case harness.EventShadowException:
			o.Kind = "shadow exception"
		default:
			end, ok := harness.EndingOf(e)
			if !ok {
				continue
			}
			o.Code, o.Subcode = end.Code, end.Subcode
			switch {
			case end.Held:
				o.Kind, o.Words = "held", end.Reason
			case end.Exited:
				o.Kind = "exit"
			case end.Signaled:
				o.Kind = "signal"
			default:
				o.Kind = "removed"
			}
			return o, true
		}
		if m := codes.FindStringSubmatch(o.Words); m != nil {
			_, _ = fmt.Sscan(m[1]+" "+m[2], &o.Code, &o.Subcode)
		}
		// A hold follows the events of the error that caused it.
		if o.Code > 0 && o.Code < vacateBase {
			continue
		}
		return o, true
	}
	return Outcome{}, false
}
