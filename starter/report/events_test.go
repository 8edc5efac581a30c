package report

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/starter/journal"
)

// herald is one whose events a test takes, and whose clock it sets.
func testHerald(size int) (*herald, *time.Time) {
	now := time.Now()
	return &herald{queue: make(chan Event, size), now: func() time.Time { return now }, last: make(map[string]time.Time)}, &now
}

func TestWhichEvents(t *testing.T) {
	for name, tt := range map[string]struct {
		e    journal.Event
		want string
	}{
		"begin":            {journal.Event{Kind: journal.JobBegins, Job: "1.0"}, ""},
		"good":             {journal.Event{Kind: journal.JobEnds, Outcome: journal.Succeeded}, ""},
		"a user's mistake": {journal.Event{Kind: journal.JobEnds, Outcome: journal.Held, Blame: "user", Cause: "ErrImagePull"}, ""},
		"removed":          {journal.Event{Kind: journal.JobEnds, Outcome: journal.Withdrawn}, ""},
		"drained":          {journal.Event{Kind: journal.JobEnds, Outcome: journal.Evicted}, ""},
		"the site's":       {journal.Event{Kind: journal.JobEnds, Job: "1.0", Outcome: journal.Requeued, Blame: "site", Reason: "too many\nrequests"}, "JobNotRun: Job 1.0 goes back to the queue: too many requests"},
		"nobody's":         {journal.Event{Kind: journal.JobEnds, Job: "1.0", Outcome: journal.Requeued, Reason: "a bug"}, "JobNotRun: Job 1.0 goes back to the queue: a bug"},
		"the starter died": {journal.Event{Kind: journal.JobEnds, Job: "1.0", Outcome: journal.Lost, Reason: "it died"}, "JobLost: Job 1.0: it died"},
		"a long reason":    {journal.Event{Kind: journal.JobEnds, Job: "1.0", Outcome: journal.Requeued, Reason: strings.Repeat("x", 5000)}, "JobNotRun: Job 1.0 goes back to the queue: " + strings.Repeat("x", 1000-len("Job 1.0 goes back to the queue: ")-3) + "..."},
	} {
		t.Run(name, func(t *testing.T) {
			h, _ := testHerald(9)
			h.tellEnd(tt.e)
			got := ""
			select {
			case e := <-h.queue:
				got = e.Reason + ": " + e.Message
			default:
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestFewEvents: however many jobs fail for however many reasons, there is about an event a
// minute, and one for a cause in ten minutes.
func TestFewEvents(t *testing.T) {
	for name, tt := range map[string]struct {
		cause func(i int) string
		most  int
	}{
		"one cause": {func(int) string { return "ErrImagePull" }, 6 + 1},
		"many":      {func(i int) string { return fmt.Sprint(i) }, 60 + eventsAtOnce},
	} {
		t.Run(name, func(t *testing.T) {
			h, now := testHerald(10000)
			for i := range 3600 { // one a second, for an hour
				h.tellEnd(journal.Event{Kind: journal.JobEnds, Outcome: journal.Requeued, Cause: tt.cause(i)})
				*now = now.Add(time.Second)
			}
			if n := len(h.queue); n > tt.most || n < tt.most/2 {
				t.Errorf("%d events in an hour, want at most %d", n, tt.most)
			}
			if len(h.last) > 100 {
				t.Errorf("%d causes are remembered", len(h.last))
			}
		})
	}
}

// TestNotGranted: it is tried once.
func TestNotGranted(t *testing.T) {
	tried := make(chan Event, 10)
	over := make(chan struct{})
	log := slog.New(slog.NewTextHandler(writer(func(line string) {
		if strings.Contains(line, "No events are made") {
			close(over)
		}
	}), nil))
	h := newHerald(t.Context(), func(_ context.Context, e Event) error {
		tried <- e
		return fmt.Errorf("%w: forbidden", ErrNotGranted)
	}, log)
	h.tell("a", Event{Reason: "A"})
	<-over
	for i := range 100 {
		h.tell(fmt.Sprint(i), Event{Reason: "B"})
	}
	if n := len(tried); n != 1 {
		t.Errorf("%d tries", n)
	}
}

// TestEventFails: after another failure it goes on.
func TestEventFails(t *testing.T) {
	tried := make(chan Event)
	h := newHerald(t.Context(), func(_ context.Context, e Event) error {
		tried <- e
		return errors.New("no answer")
	}, slog.New(slog.DiscardHandler))
	for _, reason := range []string{"A", "B"} {
		h.tell("", Event{Reason: reason})
		if e := <-tried; e.Reason != reason {
			t.Errorf("%+v, want %s", e, reason)
		}
	}
	(*herald)(nil).tell("", Event{}) // where events are not wanted
}

type writer func(string)

func (w writer) Write(p []byte) (int, error) { w(string(p)); return len(p), nil }
