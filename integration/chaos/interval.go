package chaos

import (
	"time"

	"podstarter/integration/images/probe/facts"
)

// stamp is the format of times in violations.
const stamp = "15:04:05.000"

// interval is a time from one moment to another, both included.
type interval struct{ from, to time.Time }

// overlaps reports whether they have more than a moment in common: a log's stamps
// are whole milliseconds.
func (i interval) overlaps(o interval) bool { return i.from.Before(o.to) && o.from.Before(i.to) }

// meets reports whether they have a moment in common.
func (i interval) meets(o interval) bool { return !i.to.Before(o.from) && !o.to.Before(i.from) }

// String is the interval for a message.
func (i interval) String() string { return i.from.Format(stamp) + " to " + i.to.Format(stamp) }

// codeOf is the exit code that a job must have.
func codeOf(job Job) int { return facts.CodeOf(job.Digest) }
