package report

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"podstarter/payload"
	"podstarter/rescue"
	"podstarter/starter/failure"
	"podstarter/starter/journal"
)

// Event is what whoever looks at the pod should see of what happened in it.
type Event struct {
	Warning bool   `json:"warning"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// ErrNotGranted is the error of an [Announcer] that may make no events.
var ErrNotGranted = errors.New("events are not granted")

// Announcer makes an event of the pod.
type Announcer func(ctx context.Context, e Event) error

// Bounds on events: a cluster keeps each for an hour, for everybody.
const (
	eventsAtOnce = 3                // before they become rare
	eventPause   = time.Minute      // between two then
	sameAgain    = 10 * time.Minute // between two for the same cause
)

// herald makes events of what an operator should know: few, of failures and of the pod's
// health. What comes too fast is in the log only. It ends for good if it may make none.
type herald struct {
	queue chan Event
	now   func() time.Time
	last  map[string]time.Time // of a reason and cause
	full  time.Time            // when it may make all eventsAtOnce again
}

// newHerald begins one that ends with ctx; nil if make is nil.
func newHerald(ctx context.Context, announce Announcer, log *slog.Logger) *herald {
	if announce == nil {
		return nil
	}
	h := &herald{queue: make(chan Event, eventsAtOnce), now: time.Now, last: make(map[string]time.Time)}
	rescue.Go(func() {
		for {
			select {
			case e := <-h.queue:
				err := announce(ctx, e)
				if errors.Is(err, ErrNotGranted) {
					log.Warn("No events are made of this pod", "error", failure.OneLine(err))
					return // the queue fills, and is not read again
				}
				if err != nil && ctx.Err() == nil {
					log.Warn("An event of this pod was not made", "reason", e.Reason, "error", failure.OneLine(err))
				}
			case <-ctx.Done():
				return
			}
		}
	})
	return h
}

// tell makes an event, unless there were too many of late, or one for the same cause.
func (h *herald) tell(cause string, e Event) {
	if h == nil {
		return
	}
	now, key := h.now(), e.Reason+" "+cause
	if last, ok := h.last[key]; ok && now.Sub(last) < sameAgain || h.full.Sub(now) > (eventsAtOnce-1)*eventPause {
		return
	}
	if len(h.last) > 64 {
		clear(h.last)
	}
	e.Message = journal.Clean(e.Message, 1000)
	select {
	case h.queue <- e:
		h.last[key] = now
		if h.full.Before(now) {
			h.full = now
		}
		h.full = h.full.Add(eventPause)
	default: // the API server is slow, or events are not granted
	}
}

// tellEnd makes events of jobs that this pod could not run. A user's mistake is none.
func (h *herald) tellEnd(e journal.Event) {
	switch {
	case e.Kind != journal.JobEnds:
	case e.Outcome == journal.Lost && e.Code == 0:
		h.tell("", Event{Warning: true, Reason: "JobLost", Message: "Job " + e.Job + ": " + e.Reason})
	case e.Outcome == journal.Requeued && e.Blame != payload.User.String():
		h.tell(e.Cause, Event{Warning: true, Reason: "JobNotRun", Message: "Job " + e.Job + " goes back to the queue: " + e.Reason})
	}
}
