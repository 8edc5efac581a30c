package payload

import (
	"encoding/json"
	"fmt"
	"runtime/debug"
)

// Grade is how good or bad a [Finding] is.
type Grade int

const (
	// OK works, and is as it should be.
	OK Grade = iota
	// Warn works, but a fence is missing or something will be slow or wasted.
	Warn
	// Bad does not work, or lets a job reach what is not its own.
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

// MarshalJSON writes the word.
func (g Grade) MarshalJSON() ([]byte, error) { return json.Marshal(g.String()) }

// Finding is one line of an audit of the place where payloads run.
type Finding struct {
	Grade Grade `json:"grade"`
	// What was looked at, in a few words.
	What string `json:"what"`
	// Detail is what was found.
	Detail string `json:"detail,omitempty"`
	// Fix is the line of a manifest or the knob to change; empty if it is OK.
	Fix string `json:"fix,omitempty"`
}

// BuildVersion is the version of the running program: that of its module, and
// of the commit if it is known. Starter and wrapper of one build have the same.
func BuildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	text := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			text += " " + s.Value[:12]
		}
	}
	return text
}
