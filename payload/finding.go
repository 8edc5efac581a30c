package payload

import (
	"encoding/json"
	"fmt"
)

// Grade is how good or bad a [Finding] is.
type Grade int

const (
	// OK works as it should.
	OK Grade = iota
	// Warn works, but a protection is missing or something will be slow or wasted.
	Warn
	// Bad does not work, or lets a job reach what belongs to others.
	Bad
)

// String gives "ok", "warn" or "bad".
func (g Grade) String() string {
	switch g {
	case OK:
		return "ok"
	case Warn:
		return "warn"
	case Bad:
		return "bad"
	default:
		return fmt.Sprintf("Grade(%d)", int(g))
	}
}

// MarshalJSON writes the word that String gives.
func (g Grade) MarshalJSON() ([]byte, error) { return json.Marshal(g.String()) }

// Finding is one result of an audit of a backend.
type Finding struct {
	Grade Grade `json:"grade"`
	// What was looked at, in a few words.
	What string `json:"what"`
	// Detail is what was found.
	Detail string `json:"detail,omitempty"`
	// Fix is the line of a manifest or the knob to change; empty if it is OK.
	Fix string `json:"fix,omitempty"`
}
