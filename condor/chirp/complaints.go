package chirp

import (
	"log/slog"
	"sync"
)

// complaints are log lines that a job, or anybody who reaches the proxy, can
// cause as often as they like. Only a few of each kind are logged.
type complaints struct {
	log *slog.Logger

	mu   sync.Mutex
	told [kinds]int
}

type complaint int

const (
	aboutStrangers complaint = iota // clients without the cookie
	aboutUpdates                    // refused updates
	aboutFailures                   // errors without a chirp code
	kinds
)

// maxComplaints is how many lines of each kind are logged.
const maxComplaints = 20

func (c *complaints) about(kind complaint, text string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.told[kind] == maxComplaints {
		return
	}
	if c.told[kind]++; c.told[kind] == maxComplaints {
		text += "; no more lines of this kind are logged"
	}
	c.log.Warn(text, args...)
}
