package status

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"podstarter/provisioner/backoff"
	"podstarter/provisioner/platform"
	"podstarter/provisioner/round"
)

// Config is what a board must know.
type Config struct {
	// Name is the provisioner's.
	Name string
	// Templates are the names of the templates, as in reports.
	Templates []string
	// Interval is the time between two rounds.
	Interval time.Duration
	// Leader returns the name of the one that makes pods, and whether this one does.
	Leader func() (name string, mine bool)
	Now    func() time.Time
}

// Bounds of what is kept and shown.
const (
	maxErrors = 20
	maxDetail = 2000 // bytes of an error
)

// late is how long a round may last beside three intervals: tools and calls have
// their own limits, which are shorter.
const late = 5 * time.Minute

// Board is what the last rounds saw and did. Its methods may be called at once.
type Board struct {
	config Config
	rounds prometheus.Histogram

	mu      sync.Mutex
	begun   time.Time // when this provisioner became the leader; zero while it stands by
	last    *round.Report
	ended   time.Time // when the last round ended
	known   time.Time // when the platform last said which units there are
	totals  totals
	history history
	errors  []mishap // the last ones, the youngest last
	named   named
}

// totals count since the program began.
type totals struct {
	made, withdrawn int
	removed         int
	failed          map[failure]int
	problems        map[round.Source]int
}

type failure struct {
	template string
	reason   backoff.Reason
}

// mishap is an error that rounds met, one after the other.
type mishap struct {
	Source      round.Source
	Text        string
	First, Last time.Time
	Times       int
}

// NewBoard returns a board of a provisioner that has done no round.
func NewBoard(c Config) *Board {
	b := &Board{config: c, totals: totals{failed: map[failure]int{}, problems: map[round.Source]int{}}}
	b.rounds = prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: namespace, Name: "round_seconds", Help: "Time that rounds took.",
		Buckets: []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300},
	})
	return b
}

// Lead notes that the provisioner begins to make pods, and Rest that it does so no
// longer.
func (b *Board) Lead() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.begun = b.config.Now()
	b.ended, b.known = b.begun, b.begun
}

// Rest notes that the provisioner makes no more pods.
func (b *Board) Rest() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.begun, b.last = time.Time{}, nil
}

// Note notes what a round saw and did.
func (b *Board) Note(rep round.Report) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.config.Now()
	b.last, b.ended = &rep, now
	b.rounds.Observe(rep.Took.Seconds())
	b.totals.made += len(rep.Made)
	b.totals.withdrawn += len(rep.Withdrawn)
	b.totals.removed += len(rep.Removed)
	for _, f := range rep.Failed {
		b.totals.failed[failure{b.template(f.Template), f.Reason}]++
	}
	blind := false
	for _, p := range rep.Problems {
		b.totals.problems[p.Source]++
		b.met(p, now)
		blind = blind || p.Source == round.Platform
	}
	if !blind {
		b.known = now
	}
	if !rep.Unknown { // its minute is as the one before
		b.history.add(now, sampleOf(rep))
	}
}

// met notes an error. One that is the same as before counts once more.
func (b *Board) met(p round.Problem, now time.Time) {
	text := cut(p.Err.Error(), maxDetail)
	i := slices.IndexFunc(b.errors, func(m mishap) bool { return m.Source == p.Source && m.Text == text })
	m := mishap{Source: p.Source, Text: text, First: now}
	if i >= 0 {
		m = b.errors[i]
		b.errors = slices.Delete(b.errors, i, i+1)
	}
	m.Last = now
	m.Times++
	b.errors = append(b.errors, m)
	if len(b.errors) > maxErrors {
		b.errors = b.errors[1:]
	}
}

// other stands for templates that are not in the configuration. What a unit says of
// its template is written in a label that others may change.
const other = "(other)"

func (b *Board) template(name string) string {
	if slices.Contains(b.config.Templates, name) {
		return name
	}
	return other
}

// unhealthy returns why the provisioner should be started anew, or nil.
func (b *Board) unhealthy() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.begun.IsZero() {
		return nil
	}
	now, limit := b.config.Now(), 3*b.config.Interval+late
	if since := now.Sub(b.ended); since > limit {
		return fmt.Errorf("no round has ended for %s", since.Round(time.Second))
	}
	if since := now.Sub(b.known); since > limit {
		return fmt.Errorf("for %s it has not been known which pods there are", since.Round(time.Second))
	}
	return nil
}

// pods counts the units of a report by template and phase.
func (b *Board) pods(rep *round.Report) map[string][3]int {
	counts := map[string][3]int{}
	for _, u := range rep.Units {
		n := counts[b.template(u.Template)]
		n[min(max(u.Phase, platform.Pending), platform.Ended)]++
		counts[b.template(u.Template)] = n
	}
	return counts
}
