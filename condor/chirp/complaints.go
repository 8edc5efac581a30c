package chirp

import (
	"log/slog"
	"sync"
)

// complaints are lines in the log that a job, or anybody who gets to the proxy,
// can cause as often as they like. Of each kind there are a few.
type complaints struct {
	log *slog.Logger

	mu   sync.Mutex
	told [kinds]int
}

type complaint int

const (
	aboutStrangers complaint = iota // who does not know the cookie
	aboutUpdates                    // that are refused
	aboutFailures                   // without a number
	kinds
)

// maxComplaints is how many lines there are of a kind.
const maxComplaints = 20

func (c *complaints) about(kind complaint, text string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told[kind] == maxComplaints {
		return
	}
	if c.told[kind]++; c.told[kind] == maxComplaints {
		text += "; no more is said of the kind"
	}
	c.log.Warn(text, args...)
}
