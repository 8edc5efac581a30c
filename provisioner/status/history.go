package status

import (
	"time"

	"podstarter/provisioner/platform"
	"podstarter/provisioner/round"
)

// The history has a sample for each minute of a day.
const (
	step    = time.Minute
	samples = int(24 * time.Hour / step)
)

// sample is what a minute was like: numbers of its last round, and sums of all its
// rounds.
type sample struct {
	minute int64 // since 1970; 0 if there was no round
	// Idle jobs, and those of them that get no pod.
	idle, waiting int
	// Units that are on their way, and those that run.
	pending, running        int
	made, withdrawn, failed int
}

// sampleOf returns the numbers of one round.
func sampleOf(rep round.Report) sample {
	s := sample{made: len(rep.Made), withdrawn: len(rep.Withdrawn), failed: len(rep.Failed)}
	for _, g := range rep.Groups {
		s.idle += g.Idle()
	}
	for _, o := range rep.Output.Groups {
		for _, r := range o.Waiting {
			s.waiting += r.Jobs
		}
	}
	for _, u := range rep.Units {
		switch u.Phase {
		case platform.Pending:
			s.pending++
		case platform.Running:
			s.running++
		}
	}
	return s
}

// history is a ring: a minute takes the place of the one a day before.
type history [samples]sample

func minute(t time.Time) int64 { return t.Unix() / int64(step/time.Second) }

func (h *history) add(now time.Time, s sample) {
	s.minute = minute(now)
	at := &h[((s.minute%int64(samples))+int64(samples))%int64(samples)]
	if at.minute == s.minute {
		s.made += at.made
		s.withdrawn += at.withdrawn
		s.failed += at.failed
	}
	*at = s
}

// day returns the samples of the last day, the oldest first. Minutes without a round
// have the numbers of the one before for up to an hour, which is the longest
// interval, and none of its sums; after that they are unknown.
func (h *history) day(now time.Time) []point {
	last := minute(now)
	points := make([]point, 0, samples)
	var before sample
	for m := last - int64(samples) + 1; m <= last; m++ {
		s := h[((m%int64(samples))+int64(samples))%int64(samples)]
		switch {
		case s.minute == m && m != 0:
			before = s
			points = append(points, point{sample: s, known: true})
		case before.minute != 0 && m-before.minute <= int64(time.Hour/step):
			s = before
			s.made, s.withdrawn, s.failed = 0, 0, 0
			points = append(points, point{sample: s, known: true})
		default:
			points = append(points, point{})
		}
	}
	return points
}

// point is a sample, if there is one.
type point struct {
	sample
	known bool
}
