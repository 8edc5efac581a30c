package podwatch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"podstarter/k8sexec/verdict"
)

// Progress holds what is reported about a container that is slow to come.
type Progress struct {
	report  func(string)
	next    time.Duration // when to report progress next, from the start
	started time.Time
	who     string
	spec    string

	state  string           // what the status says at the moment
	behind string           // what the kubelet is busy with, if that is another container
	failed *verdict.Failure // the latest failure
}

// NewProgress begins for somebody, such as "container payload". The first report comes
// after the time first, and then each time after twice as long.
func NewProgress(who, spec string, first time.Duration, report func(string)) *Progress {
	return &Progress{report: report, next: first, started: time.Now(), who: who, spec: spec, state: "no news"}
}

// Saw takes what a tracker made of a state of the pod: its words, the failure that it
// shows, and whether the container runs.
func (p *Progress) Saw(state string, f *verdict.Failure, running bool) {
	p.state = state
	switch {
	case running:
		p.failed = nil // the kubelet got over it
	case f == nil:
	default:
		if p.failed == nil || p.failed.Reason != f.Reason || p.failed.Message != f.Message {
			p.report(fmt.Sprintf("%s: %s: %s", p.who, f.Reason, f.Message))
		}
		p.failed = f
	}
}

// Behind says what the kubelet is busy with, if that is another container.
func (p *Progress) Behind(words string) { p.behind = words }

// status is the state, or why there is none.
func (p *Progress) status() string { return cmp.Or(p.behind, p.state) }

// Final gives the failure if waiting longer would not help.
func (p *Progress) Final() *verdict.Failure {
	if p.failed != nil && verdict.Judge(*p.failed).IsFinal(time.Now()) {
		return p.failed
	}
	return nil
}

// Waited is for how long.
func (p *Progress) Waited() time.Duration { return time.Since(p.started) }

// Tell reports the state if it is time to.
func (p *Progress) Tell() {
	waited := p.Waited()
	if waited < p.next {
		return
	}
	p.next = 2 * waited
	p.report(fmt.Sprintf("%s: waiting for %s for %s, status: %s", p.who, p.spec, waited.Round(time.Second), p.status()))
}

// Ended gives the error when ctx has ended. If the time is over, it prefers the latest
// failure that the kubelet reported: that says more than a timeout.
func (p *Progress) Ended(ctx context.Context) error {
	cause := context.Cause(ctx)
	if !errors.Is(cause, ErrTimeout) {
		return cause
	}
	if p.failed != nil {
		return p.failed
	}
	reason := verdict.ReasonTimeout
	if p.behind != "" {
		reason = verdict.ReasonBusy
	}
	return &verdict.Failure{Origin: verdict.FromClock, Reason: reason,
		Message: fmt.Sprintf("after %s; status: %s", p.Waited().Round(time.Second), p.status())}
}
