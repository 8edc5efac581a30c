package podhealth

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"podstarter/starter/failure"
)

// Health is what is known of the pod's ability to run jobs, in the words of the
// failures that its starters met. The zero value is a pod with no trouble.
//
// Each state is a pure function of the one before.
type Health struct {
	// Sick says that no job will run in this pod until something is repaired.
	Sick *Sickness `json:"sick,omitempty"`
	// Rests are the slots whose last job met bad luck, by the number that the
	// startd gives the slot (SlotId).
	Rests map[string]Rest `json:"rests,omitempty"`
}

// Sickness is the reason why no job will run in the pod.
type Sickness struct {
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
	Noted  time.Time `json:"noted"`
	// Until is when one more job is tried. A sickness whose time is over is
	// remembered until a job gets its container, so that the next one lasts longer.
	Until time.Time `json:"until"`
	// Tries counts the jobs that found the pod sick.
	Tries int `json:"tries"`
	// Seen says that a check of the pod has found the sickness: a check that finds
	// nothing then ends it.
	Seen bool `json:"seen,omitempty"`
}

// Rest is the time for which a slot takes no jobs.
type Rest struct {
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
	// somebody must repair by hand is tried twice an hour with the usual limit.
	longerSick = 6
)

// Bounds of what is kept, and of what is believed when it is read.
const (
	maxReason  = 500 // bytes
	maxRests   = 256
	maxStrikes = 1000
	// MaxRest is the most that Pod.LongestRest may be.
	MaxRest = 24 * time.Hour
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
func (h Health) fellSick(reason string, now time.Time, longest time.Duration) Health {
	if longest <= 0 {
		return h
	}
	s := Sickness{Reason: shortened(reason), Since: now, Noted: now, Tries: 1}
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
func (h Health) tired(slot, reason string, now time.Time, longest time.Duration) Health {
	if longest <= 0 || slot == "" {
		return h
	}
	strikes := min(h.Rests[slot].Strikes+1, maxStrikes)
	h.Rests = maps.Clone(h.Rests)
	if h.Rests == nil {
		h.Rests = make(map[string]Rest)
	}
	if _, ok := h.Rests[slot]; !ok && len(h.Rests) >= maxRests {
		return h
	}
	h.Rests[slot] = Rest{Reason: shortened(reason), Noted: now, Until: now.Add(backoff(min(firstRest, longest), longest, strikes)), Strikes: strikes}
	return h
}

// bound is the state after a job got its container: the pod's sickness is over.
// Only a start there shows whether the slot is fit for a job.
func (h Health) bound() Health {
	h.Sick = nil
	return h
}

// started is the state after something was started for a slot's job: the slot's
// failures are forgotten as well.
func (h Health) started(slot string) Health {
	h.Sick = nil
	h.Rests = maps.Clone(h.Rests)
	delete(h.Rests, slot)
	return h
}

// checked is the state after a check of the pod because of the sickness s; err is
// what the check found. A check that finds nothing ends only a sickness that an
// earlier check has found: only a job can tell, for example, that the node's disk
// is full.
func (h Health) checked(s Sickness, err error, now time.Time) Health {
	if h.Sick == nil || !h.Sick.Since.Equal(s.Since) || h.Sick.Tries != s.Tries {
		return h // of another sickness
	}
	after := *h.Sick
	after.Noted = now
	switch {
	case err != nil:
		after.Seen = true
		if until := now.Add(2 * longestCheck); after.Until.Before(until) {
			after.Until = until // no job is tried as long as checks go on
		}
		after.Reason = shortened(failure.OneLine(err))
	case after.Seen && now.Before(after.Until):
		after.Until = now
	}
	h.Sick = &after
	return h
}

// offline tells until when the pod takes no jobs, and why; zero if it does.
func (h Health) offline(now time.Time) (until time.Time, reason string) {
	if h.Sick == nil || !now.Before(h.Sick.Until) {
		return time.Time{}, ""
	}
	return h.Sick.Until, h.Sick.Reason
}

// blocked is offline for one slot, its own rest included.
func (h Health) blocked(slot string, now time.Time) (until time.Time, reason string) {
	until, reason = h.offline(now)
	if r, ok := h.Rests[slot]; ok && now.Before(r.Until) && r.Until.After(until) {
		return r.Until, r.Reason
	}
	return until, reason
}

// slots are the slots that have something to rest from, in order.
func (h Health) slots() []string { return slices.Sorted(maps.Keys(h.Rests)) }

// sane is what may be believed of a state that was read from a file. A sickness or
// rest that was noted in the future is over: the clock was set back.
func (h Health) sane(now time.Time) Health {
	const most = longerSick * MaxRest
	end := func(noted, until time.Time) time.Time {
		if noted.After(now.Add(time.Minute)) || until.Sub(noted) > most {
			return noted.Add(-most)
		}
		return until
	}
	var out Health
	if s := h.Sick; s != nil {
		out.Sick = &Sickness{
			Reason: shortened(s.Reason), Since: s.Since, Noted: s.Noted, Until: end(s.Noted, s.Until),
			Tries: max(1, min(s.Tries, maxStrikes)), Seen: s.Seen,
		}
	}
	for slot, r := range h.Rests {
		if slotID(slot) != slot || len(out.Rests) >= maxRests {
			continue
		}
		if out.Rests == nil {
			out.Rests = make(map[string]Rest)
		}
		out.Rests[slot] = Rest{Reason: shortened(r.Reason), Noted: r.Noted, Until: end(r.Noted, r.Until), Strikes: max(1, min(r.Strikes, maxStrikes))}
	}
	return out
}

// shortened is a reason as it may stand in an ad: one line, printable, bounded.
func shortened(reason string) string {
	reason = strings.Join(strings.FieldsFunc(reason, func(r rune) bool { return r <= ' ' || r == 0x7f }), " ")
	if len(reason) > maxReason {
		reason = reason[:maxReason]
	}
	return strings.ToValidUTF8(reason, "")
}

// slotID is the number in a slot's name, empty if there is none. slot2_5 is a part
// of the partitionable slot2; both have the SlotId 2.
func slotID(slot string) string {
	slot, _, _ = strings.Cut(slot, "_")
	digits := strings.TrimLeftFunc(slot, func(r rune) bool { return r < '0' || r > '9' })
	if digits == "" || len(digits) > 4 || strings.Trim(digits, "0123456789") != "" || digits[0] == '0' {
		return ""
	}
	return digits
}
