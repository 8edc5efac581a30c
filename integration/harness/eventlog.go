package harness

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Numbers of the events in a job's event log (HTCondor manual, "Job Event Log
// Codes").
const (
	EventSubmit          = 0
	EventExecute         = 1
	EventEvicted         = 4
	EventTerminated      = 5
	EventImageSize       = 6
	EventShadowException = 7
	EventAborted         = 9
	EventSuspended       = 10
	EventUnsuspended     = 11
	EventHeld            = 12
	EventReleased        = 13
	EventRemoteError     = 21
	EventDisconnected    = 22
	EventReconnected     = 23
	EventReconnectFailed = 24
	EventFileTransfer    = 40
)

// Event is one entry of a job's event log.
type Event struct {
	Number   int
	Cluster  int
	Proc     int
	Stamp    string   // as written, in the zone of the access point
	Headline string   // what follows the stamp on the first line
	Body     []string // the other lines, without their leading tab
}

// Text is the event as a user reads it, without number, job and stamp.
func (e Event) Text() string {
	return strings.Join(append([]string{e.Headline}, e.Body...), "\n")
}

var (
	// Events of a cluster's common files have a process number below 0.
	headPattern = regexp.MustCompile(
		`^(\d{3}) \((\d+)\.(-?\d+)\.\d+\) (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?Z?|\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d+)?Z?) (.*)$`)
	codePattern   = regexp.MustCompile(`^Code (-?\d+) Subcode (-?\d+)$`)
	returnPattern = regexp.MustCompile(`^\(1\) Normal termination \(return value (-?\d+)\)`)
	signalPattern = regexp.MustCompile(`^\(0\) Abnormal termination \(signal (\d+)\)`)
)

// ParseEvents reads the text of an event log (HTCondor
// condor_utils/condor_event.cpp: formatHeader, and "..." after each event). An
// event that is not complete yet is left out.
func ParseEvents(text string) ([]Event, error) {
	var events []Event
	lines := strings.Split(text, "\n")
	start := 0
	for i, line := range lines {
		// The last piece has no newline: it may be half a line.
		if strings.TrimRight(line, "\r") != "..." || i == len(lines)-1 {
			continue
		}
		event, err := parseEvent(lines[start:i])
		if err != nil {
			return events, fmt.Errorf("event log, line %d: %w", start+1, err)
		}
		events = append(events, event)
		start = i + 1
	}
	return events, nil
}

func parseEvent(lines []string) (Event, error) {
	if len(lines) == 0 {
		return Event{}, fmt.Errorf("an event without a line")
	}
	m := headPattern.FindStringSubmatch(lines[0])
	if m == nil {
		return Event{}, fmt.Errorf("%q is not the head of an event", lines[0])
	}
	event := Event{Stamp: m[4], Headline: strings.TrimSpace(m[5])}
	for i, field := range []*int{&event.Number, &event.Cluster, &event.Proc} {
		n, err := strconv.Atoi(m[i+1])
		if err != nil {
			return Event{}, fmt.Errorf("reading %q: %w", lines[0], err)
		}
		*field = n
	}
	for _, line := range lines[1:] {
		event.Body = append(event.Body, strings.TrimRight(strings.TrimPrefix(line, "\t"), " \r"))
	}
	return event, nil
}

// Ending says how a run of a job, or the job, ended.
type Ending struct {
	Event    Event
	Exited   bool // terminated by itself with Code
	Signaled bool // terminated by signal Code
	Held     bool
	Removed  bool
	Code     int // exit code, signal or hold code
	Subcode  int // of a hold
	Reason   string
}

// String is the ending in the words of HTCondor's tools.
func (e Ending) String() string {
	switch {
	case e.Exited:
		return fmt.Sprintf("exit code %d", e.Code)
	case e.Signaled:
		return fmt.Sprintf("signal %d", e.Code)
	case e.Held:
		return fmt.Sprintf("held %d/%d: %s", e.Code, e.Subcode, e.Reason)
	case e.Removed:
		return "removed"
	}
	return "not ended"
}

// EndingOf reads an event that ends a job or puts it on hold; ok is false for
// any other.
func EndingOf(event Event) (ending Ending, ok bool) {
	ending.Event = event
	switch event.Number {
	case EventAborted:
		ending.Removed = true
		ending.Reason = strings.Join(event.Body, "\n")
		return ending, true
	case EventTerminated:
		for _, line := range event.Body {
			if m := returnPattern.FindStringSubmatch(line); m != nil {
				ending.Exited = true
				ending.Code, _ = strconv.Atoi(m[1])
				return ending, true
			}
			if m := signalPattern.FindStringSubmatch(line); m != nil {
				ending.Signaled = true
				ending.Code, _ = strconv.Atoi(m[1])
				return ending, true
			}
		}
		return ending, false
	case EventHeld:
		ending.Held = true
		var reason []string
		for _, line := range event.Body {
			if m := codePattern.FindStringSubmatch(line); m != nil {
				ending.Code, _ = strconv.Atoi(m[1])
				ending.Subcode, _ = strconv.Atoi(m[2])
				continue
			}
			reason = append(reason, line)
		}
		ending.Reason = strings.Join(reason, "\n")
		return ending, true
	}
	return ending, false
}
