package lives_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"podstarter/condor/shadow"
	"podstarter/starter/activation"
	"podstarter/starter/journal"
)

// notes are what the pod's operator is told.
type notes struct {
	mu     sync.Mutex
	events []journal.Event
}

func (n *notes) note(e journal.Event) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.events = append(n.events, e)
	return nil
}

// judgeNotes: the operator hears once of the end, as the last of all, and in the same way as
// the shadow.
func (w *world) judgeNotes() {
	w.Helper()
	w.notes.mu.Lock()
	defer w.notes.mu.Unlock()
	began, all := false, w.notes.events
	for i, e := range all {
		if began = began || e.Kind == journal.JobBegins; e.Kind == journal.JobEnds != (i == len(all)-1) {
			w.Errorf("the operator hears %q at the wrong time: %v", e.Kind, all)
		}
		if began && e.Job == "" || e.Slot != "slot1_1" {
			w.Errorf("the operator does not hear which job it is: %+v", e)
		}
	}
	words, _ := w.lastWords()
	if len(all) == 0 {
		if len(words) > 0 {
			w.Errorf("the operator hears nothing of %v", words)
		}
		return
	}
	end := all[len(all)-1]
	want := []journal.Outcome{journal.Lost, journal.Withdrawn, journal.Evicted}
	switch {
	case w.code == activation.ExitLostShadow: // what it was told last has perhaps not arrived
	case w.code == activation.ExitGeneral:
		want = []journal.Outcome{journal.Requeued}
	case len(words) > 0:
		want = outcomes(words[len(words)-1])
	}
	if !slices.Contains(want, end.Outcome) {
		w.Errorf("the operator hears %+v, the shadow %q", end, words)
	}
}

// outcomes are those that go with a last word to the shadow.
func outcomes(word string) []journal.Outcome {
	var status, reason, code, subcode int
	switch {
	case strings.HasPrefix(word, "job_exit"):
		_, _ = fmt.Sscanf(word, "job_exit %d %d", &status, &reason)
		switch shadow.Reason(reason) {
		case shadow.JobKilled:
			return []journal.Outcome{journal.Withdrawn}
		case shadow.JobShouldRequeue:
			return []journal.Outcome{journal.Evicted, journal.Withdrawn, journal.Held, // of a hold the startd told another shadow
				journal.Requeued} // the JVM failed
		case shadow.JobMissedDeferralTime:
			return []journal.Outcome{journal.Held}
		}
		switch {
		case status == 0:
			return []journal.Outcome{journal.Succeeded}
		case status&0x7f != 0:
			return []journal.Outcome{journal.Signaled}
		}
		return []journal.Outcome{journal.Exited}
	case word == "error":
		return []journal.Outcome{journal.Evicted, journal.Withdrawn, journal.Requeued}
	}
	_, _ = fmt.Sscanf(word, "error %d/%d", &code, &subcode)
	if shadow.ShouldVacate(code, subcode) {
		return []journal.Outcome{journal.Requeued, journal.Evicted}
	}
	return []journal.Outcome{journal.Held}
}
