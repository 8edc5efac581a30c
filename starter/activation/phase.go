package activation

import "fmt"

// phase is how far an activation has come. It only moves along [transitions]:
//
//	begun ── registered ── prepared ── ready ─┬─ running ── exited ── told ─┬─ handing ── over ── gone
//	                                   │      │                      │     │
//	                                   │      └──────── again ───────┼─────┘ a checkpoint was saved
//	                                   │                             │
//	                                   └── missed                    └── held: the shadow has hung up
//
// From every phase before over there is a way to failed, in which the job has no end of
// its own to report, and from there to over.
type phase int

const (
	begun      phase = iota // what the startd handed down is taken over; commands are served
	registered              // the shadow knows this starter; job and slot are known
	prepared                // a payload slot is leased, and there is a sandbox
	keeping                 // a data slot: there is no job, but common files for others
	ready                   // the input is here, and the container runs the job's image
	running                 // the main process was started
	exited                  // the main process has ended, and nobody has heard of it
	told                    // shadow and startd have heard of the end
	held                    // the shadow was told to hold the job; only the startd hears its end
	handing                 // the shadow gets output and exit status
	failed                  // the job has no end of its own to report
	over                    // the last word was said
	gone                    // nothing of the job is left on the machine
)

// transitions are the phases that may follow each.
var transitions = map[phase][]phase{
	begun:      {registered, failed},
	registered: {prepared, failed},
	prepared:   {ready, keeping, failed},
	keeping:    {failed},
	ready:      {running, failed},
	running:    {exited, failed},
	exited:     {told, held, failed},
	told:       {ready, handing, held, failed},
	held:       {over, failed},
	handing:    {over, failed},
	failed:     {over},
	over:       {gone},
}

func (p phase) String() string {
	return [...]string{"begun", "registered", "prepared", "keeping", "ready", "running", "exited", "told", "held", "handing", "failed", "over", "gone"}[p]
}

// enter moves on to a phase. A move that is not in the table is a bug of this program: it
// panics, which gives the job back to the queue.
func (a *activation) enter(next phase) {
	for _, allowed := range transitions[a.phase] {
		if allowed == next {
			a.phase = next
			return
		}
	}
	panic(fmt.Sprintf("an activation moves from %s to %s", a.phase, next))
}
