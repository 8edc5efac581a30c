package main

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"podstarter/starter/failure"
)

// health is what is known of the pod's ability to run jobs, in the words of the
// failures that its starters met. The zero value is a pod with no trouble.
//
// Each state is a pure function of the one before; the store keeps them in a
// file between one starter and the next.
type health struct {
	// Sick: no job will run in this pod until something is mended.
	Sick *sickness `json:"sick,omitempty"`
	// Rests are the slots whose last job met bad luck, by the number that the
	// startd gives the slot (SlotId).
	Rests map[string]rest `json:"rests,omitempty"`
}

// sickness is a pod in which no job will run.
type sickness struct {
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
	Noted  time.Time `json:"noted"`
	// Until is when one more job is tried. A sickness that is over but has not
	// been followed by a job that could be bound is remembered, so that the next
	// one lasts longer.
	Until time.Time `json:"until"`
	// Tries counts the jobs that found the pod sick.
	Tries int `json:"tries"`
	// Seen says that a check of the pod finds the sickness, so that a check
	// which finds nothing is the end of it.
	Seen bool `json:"seen,omitempty"`
}

// rest is a slot that takes no jobs for a moment.
type rest struct {
	Reason  string    `json:"reason"`
	Noted   time.Time `json:"noted"`
	Until   time.Time `json:"until"`
	Strikes int       `json:"strikes"`
}

// The periods of resting. They are ours, since the kubelet's own back-off goes
// by image string and never sees two equal ones from us.
const (
	firstRest = 10 * time.Second
	firstSick = time.Minute
	// longerSick is how much longer than a rest a sickness may last: a pod that
	// somebody must mend by hand is tried twice an hour with the usual limit.
	longerSick = 6
)

// Bounds of what is kept, and of what is believed when it is read.
const (
	maxHealthReason = 500 // bytes
	maxRests        = 256
	maxStrikes      = 1000
	// maxMaxRest is the largest value of POD_STARTER_MAX_REST.
	maxMaxRest = 24 * time.Hour
)

// backoff doubles from first with each strike.
func backoff(first, most time.Duration, strikes int) time.Duration {
	if d := float64(first) * math.Pow(2, float64(min(strikes, maxStrikes)-1)); d < float64(most) {
		return time.Duration(d)
	}
	return most
}

// fellSick is the state after a job found that none will run here. longest is
// how long a slot may rest; 0 turns both kinds of rest off.
func (h health) fellSick(reason string, now time.Time, longest time.Duration) health {
	if longest <= 0 {
		return h
	}
	s := sickness{Reason: shortened(reason), Since: now, Noted: now, Tries: 1}
	if h.Sick != nil {
		s.Tries = min(h.Sick.Tries+1, maxStrikes)
		if now.Before(h.Sick.Until) { // another slot found the same
			s.Since, s.Tries, s.Seen = h.Sick.Since, h.Sick.Tries, h.Sick.Seen
		}
	}
	s.Until = now.Add(backoff(min(firstSick, longest), longerSick*longest, s.Tries))
	h.Sick = &s
	return h
}

// tired is the state after a slot's job met bad luck.
func (h health) tired(slot, reason string, now time.Time, longest time.Duration) health {
	if longest <= 0 || slot == "" {
		return h
	}
	strikes := min(h.Rests[slot].Strikes+1, maxStrikes)
	h.Rests = maps.Clone(h.Rests)
	if h.Rests == nil {
		h.Rests = make(map[string]rest)
	}
	if _, ok := h.Rests[slot]; !ok && len(h.Rests) >= maxRests {
		return h
	}
	h.Rests[slot] = rest{Reason: shortened(reason), Noted: now, Until: now.Add(backoff(min(firstRest, longest), longest, strikes)), Strikes: strikes}
	return h
}

// bound is the state after a job got its container: whatever the pod was sick of is
// over. Whether the slot is fit for a job shows when something is started there.
func (h health) bound() health {
	h.Sick = nil
	return h
}

// well is bound after something was started for a slot's job: nothing of this slot
// is remembered.
func (h health) well(slot string) health {
	h.Sick = nil
	h.Rests = maps.Clone(h.Rests)
	delete(h.Rests, slot)
	return h
}

// checked is the state after a check of the pod that took place because of the
// sickness s. Only a sickness that a check has seen ends with a check that finds
// nothing: whether the node's disk is full, only a job can tell.
func (h health) checked(s sickness, err error, now time.Time) health {
	if h.Sick == nil || !h.Sick.Since.Equal(s.Since) || h.Sick.Tries != s.Tries {
		return h // of something else
	}
	after := *h.Sick
	after.Noted = now
	switch {
	case err != nil:
		after.Seen = true
		if until := now.Add(2 * longestCheck); after.Until.Before(until) {
			after.Until = until // no job need find out, as long as checks go on
		}
		after.Reason = shortened(failure.OneLine(err))
	case after.Seen && now.Before(after.Until):
		after.Until = now
	}
	h.Sick = &after
	return h
}

// offline tells until when the pod takes no jobs, and why; zero if it does.
func (h health) offline(now time.Time) (until time.Time, reason string) {
	if h.Sick == nil || !now.Before(h.Sick.Until) {
		return time.Time{}, ""
	}
	return h.Sick.Until, h.Sick.Reason
}

// blocked is offline for one slot, its own rest included.
func (h health) blocked(slot string, now time.Time) (until time.Time, reason string) {
	until, reason = h.offline(now)
	if r, ok := h.Rests[slot]; ok && now.Before(r.Until) && r.Until.After(until) {
		return r.Until, r.Reason
	}
	return until, reason
}

// slots are the slots that have something to rest from, in order.
func (h health) slots() []string { return slices.Sorted(maps.Keys(h.Rests)) }

// sane is what may be believed of a state that was read from a file. One that
// was noted in the future is over: the clock was set back.
func (h health) sane(now time.Time) health {
	const most = longerSick * maxMaxRest
	end := func(noted, until time.Time) time.Time {
		if noted.After(now.Add(time.Minute)) || until.Sub(noted) > most {
			return noted.Add(-most)
		}
		return until
	}
	var out health
	if s := h.Sick; s != nil {
		out.Sick = &sickness{
			Reason: shortened(s.Reason), Since: s.Since, Noted: s.Noted, Until: end(s.Noted, s.Until),
			Tries: max(1, min(s.Tries, maxStrikes)), Seen: s.Seen,
		}
	}
	for slot, r := range h.Rests {
		if slotID(slot) != slot || len(out.Rests) >= maxRests {
			continue
		}
		if out.Rests == nil {
			out.Rests = make(map[string]rest)
		}
		out.Rests[slot] = rest{Reason: shortened(r.Reason), Noted: r.Noted, Until: end(r.Noted, r.Until), Strikes: max(1, min(r.Strikes, maxStrikes))}
	}
	return out
}

// shortened is a reason as it may stand in an ad: one line, printable, bounded.
func shortened(reason string) string {
	reason = strings.Join(strings.FieldsFunc(reason, func(r rune) bool { return r <= ' ' || r == 0x7f }), " ")
	if len(reason) > maxHealthReason {
		reason = reason[:maxHealthReason]
	}
	return strings.ToValidUTF8(reason, "")
}

// slotID is the number of a slot in its name: that of slot2_5, a part of a
// partitionable slot, is 2, and both have the same SlotId. Empty if there is
// none.
func slotID(slot string) string {
	slot, _, _ = strings.Cut(slot, "_")
	digits := strings.TrimLeftFunc(slot, func(r rune) bool { return r < '0' || r > '9' })
	if digits == "" || len(digits) > 4 || strings.Trim(digits, "0123456789") != "" || digits[0] == '0' {
		return ""
	}
	return digits
}
