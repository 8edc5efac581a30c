package journal

import (
	"strings"
	"time"
	"unicode"
)

// Kind is what has happened.
type Kind string

const (
	JobBegins  Kind = "job begins"  // which job it is, and its slot
	ImageBound Kind = "image bound" // its container runs its image
	JobEnds    Kind = "job ends"    // nothing of it is reported any more
	Checked    Kind = "checked"     // the pod was checked; with a reason, it takes no jobs
	Called     Kind = "called"      // an errand has called the API server; only that counts
)

// Outcome is how a job's run in this pod ended.
type Outcome string

const (
	Succeeded Outcome = "succeeded" // exit code 0
	Exited    Outcome = "failed"    // another exit code
	Signaled  Outcome = "signaled"  // it died of a signal
	Held      Outcome = "held"      // its user has to correct something, or a policy of the startd holds it
	Requeued  Outcome = "requeued"  // it could not be run here
	Withdrawn Outcome = "withdrawn" // its access point took it back: condor_rm, condor_hold, a policy
	Evicted   Outcome = "evicted"   // startd or pod ended it
	Lost      Outcome = "lost"      // shadow or starter died, and nobody knows better
)

// Outcomes are all of them.
var Outcomes = []Outcome{Succeeded, Exited, Signaled, Held, Requeued, Withdrawn, Evicted, Lost}

// Event is one line of the journal. Fields that are empty are unknown, or make no sense for
// its kind. Texts are clean: see [Clean].
type Event struct {
	Time time.Time `json:"time"`
	Kind Kind      `json:"kind"`
	PID  int       `json:"pid"` // of the process that wrote it, in the pilot's PID namespace

	Job        string `json:"job,omitempty"`   // cluster.proc
	Owner      string `json:"owner,omitempty"` // user@domain
	Slot       string `json:"slot,omitempty"`
	SubmitHost string `json:"submitHost,omitempty"`

	Container string  `json:"container,omitempty"`
	Image     string  `json:"image,omitempty"`
	How       string  `json:"how,omitempty"`     // payload.How
	Seconds   float64 `json:"seconds,omitempty"` // of the binding, or of the whole activation
	Fetched   float64 `json:"fetched,omitempty"` // seconds for which a puller was waited for

	// Copied are the seconds in which an image's files were copied into the container, and CopiedBytes how long all
	// of them are, for an image that the kubelet did not pull.
	Copied      float64 `json:"copied,omitempty"`
	CopiedBytes int64   `json:"copiedBytes,omitempty"`

	Outcome Outcome `json:"outcome,omitempty"`
	Started bool    `json:"started,omitempty"` // the job's program was started
	Exit    *int    `json:"exit,omitempty"`    // exit code
	Signal  int     `json:"signal,omitempty"`  // that the program died of
	Code    int     `json:"code,omitempty"`    // HTCondor's hold or vacate code
	Subcode int     `json:"subcode,omitempty"`
	Blame   string  `json:"blame,omitempty"`  // payload.Blame, if a backend gave its verdict
	Cause   string  `json:"cause,omitempty"`  // the verdict's reason, one word
	Reason  string  `json:"reason,omitempty"` // what the user reads
	Ran     float64 `json:"ran,omitempty"`    // seconds of the job's program, of all its runs
	CPU     float64 `json:"cpu,omitempty"`    // seconds
	Memory  int64   `json:"memory,omitempty"` // largest, in bytes

	// Calls are those to the API server by "VERB CODE".
	Calls map[string]int64 `json:"calls,omitempty"`
}

// Bounds of the texts of an event, in bytes. Together they stay below maxLine, however they
// are quoted.
const (
	maxWord   = 64
	maxName   = 128
	maxImage  = 256
	maxReason = 500
	maxCalls  = 24
)

// clean bounds everything that comes from outside.
func (e Event) clean() Event {
	for _, t := range []struct {
		text *string
		most int
	}{
		{&e.Job, maxWord}, {&e.Owner, maxName}, {&e.Slot, maxWord}, {&e.SubmitHost, maxName}, {&e.Container, maxWord}, {&e.Image, maxImage},
		{&e.How, maxWord}, {&e.Blame, maxWord}, {&e.Cause, maxWord}, {&e.Reason, maxReason},
	} {
		*t.text = Clean(*t.text, t.most)
	}
	if len(e.Calls) > maxCalls {
		e.Calls = nil
	}
	return e
}

// Clean is a text as it may stand in a line of a log: one line, printable, at most so many
// bytes. A longer one ends in "...".
func Clean(s string, most int) string {
	if len(s) > 4*most {
		s = s[:4*most] + " "
	}
	s = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == unicode.ReplacementChar || !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, s)), " ")
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-3], "") + "..."
}
