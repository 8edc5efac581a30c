// Package backoff decides how many pods of a template may be tried after pods of
// it have come to nothing.
//
// A template is in one of four states:
//
//	          a pod reports                    a pod fails
//	unknown ───────────────▶ proven ─────────────────────────┐
//	   │  ▲                    ▲                               ▼
//	   │  └── no pod for long ─┤◀────── a pod reports ─────  waiting ◀─┐
//	   └── a pod fails ────────┼──────────────────────────────▶│       │ a pod fails
//	                           │                     time is over      │
//	                           └───── a pod reports ───────  trying ───┘
//
// In the state unknown a few pods may be tried, in proven any number, in waiting
// none, and in trying one. Each reason has a first wait and a longest one; the
// wait doubles from failure to failure with the same reason.
package backoff

import (
	"fmt"
	"slices"
	"time"
)

// Reason says why a pod came to nothing.
type Reason string

// The reasons, with Kubernetes' words where it has one.
const (
	Unschedulable Reason = "Unschedulable" // no node has room for the pod
	Denied        Reason = "Denied"        // the API server refused it: quota, LimitRange, admission
	ImageFailed   Reason = "ImageFailed"   // the pilot's image cannot be pulled
	Unstarted     Reason = "Unstarted"     // a node has the pod for long, and has not begun it
	Failed        Reason = "Failed"        // the pod ended soon, without having reported
	Unreported    Reason = "Unreported"    // the pod runs, and the collector does not know it
	Untaken       Reason = "Untaken"       // its slots were free, and no idle job took one
)

// Horizon is the first and the longest wait after failures with one reason.
type Horizon struct{ First, Longest time.Duration }

// Horizons of the reasons. A full cluster may have room in a minute, and a quota
// is often freed by pods that end; an image or a configuration is mended by
// somebody who has to notice first.
var Horizons = map[Reason]Horizon{
	Unschedulable: {First: time.Minute, Longest: 10 * time.Minute},
	Denied:        {First: time.Minute, Longest: 15 * time.Minute},
	ImageFailed:   {First: 5 * time.Minute, Longest: time.Hour},
	Unstarted:     {First: 5 * time.Minute, Longest: time.Hour},
	Failed:        {First: 2 * time.Minute, Longest: time.Hour},
	Unreported:    {First: 5 * time.Minute, Longest: time.Hour},
	Untaken:       {First: 5 * time.Minute, Longest: time.Hour},
}

// Proof is how many pods of a template may be tried together as long as none of
// them has reported.
const Proof = 3

// Trial is how many pods of a template may be tried for a group of jobs as long as no
// job has taken one of them. What is known here of jobs and slots may be wrong.
const Trial = 20

// Forget is how long the report of a pod counts. A site may have changed since.
const Forget = 6 * time.Hour

// Unlimited is the allowance of a template that works.
const Unlimited = int(^uint(0) >> 1)

// State is what is remembered of one template. The zero value is a template that
// was never tried.
type State struct {
	// LastReport is when a pod of the template last reported to the collector.
	LastReport time.Time
	// Reason is that of the last failure since then, and Failures is how often there
	// was this one.
	Reason   Reason
	Failures int
	// Until is when the next pod may be tried.
	Until time.Time
	// Series has what is known of each reason: one that comes between does not make
	// another one begin anew.
	Series [len(reasons)]Series
}

// Series is the failures with one reason since a pod last reported.
type Series struct {
	Failures int
	Until    time.Time
}

// reasons are all reasons, each in its place in a State.
var reasons = [...]Reason{Failed, Unschedulable, Denied, ImageFailed, Unreported, Untaken, Unstarted}

// number is the place of a reason in a State. One that is not known is a failure like
// others.
func (r Reason) number() int { return max(slices.Index(reasons[:], r), 0) }

// Reported notes that a pod of the template has reported to the collector.
func (s State) Reported(now time.Time) State { return State{LastReport: now} }

// Failed notes that pods of the template came to nothing. Pods that were made
// together fail together, so that those which fail during a wait for the same reason
// do not make it longer.
func (s State) Failed(reason Reason, now time.Time) State {
	this := &s.Series[reason.number()]
	if now.Before(this.Until) {
		return s
	}
	h, known := Horizons[reason]
	if !known {
		h = Horizons[Failed]
	}
	wait := h.Longest
	// Beyond 16 doublings each horizon has been reached, and the shift would overflow.
	if this.Failures < 16 {
		wait = min(h.First<<this.Failures, h.Longest)
	}
	this.Failures++
	this.Until = now.Add(wait)
	s.Reason, s.Failures = reason, this.Failures
	if this.Until.After(s.Until) {
		s.Until = this.Until
	}
	return s
}

// Settled returns the state as it is at now. A clock that was set back by more
// than a wait would stop a template for as long, so waits never last longer than
// the horizon of their reason.
func (s State) Settled(now time.Time) State {
	if s.LastReport.After(now) {
		s.LastReport = now
	}
	s.Until = time.Time{}
	for reason, h := range Horizons {
		this := &s.Series[reason.number()]
		if latest := now.Add(h.Longest); this.Until.After(latest) {
			this.Until = latest
		}
		if this.Until.After(s.Until) {
			s.Until = this.Until
		}
	}
	return s
}

// Allowance returns how many pods of the template may be on their way, which
// means that they have not reported yet, and why not more.
func (s State) Allowance(now time.Time) (pods int, why string) {
	switch {
	case s.Failures > 0 && now.Before(s.Until):
		return 0, fmt.Sprintf("%d times in a row pods came to nothing (%s); the next one is tried at %s", s.Failures, s.Reason, s.Until.UTC().Format(time.TimeOnly))
	case s.Failures > 0:
		return 1, fmt.Sprintf("after %d times in a row that pods came to nothing (%s), one is tried", s.Failures, s.Reason)
	case s.LastReport.IsZero() || now.Sub(s.LastReport) > Forget:
		return Proof, fmt.Sprintf("until a pod has reported to the collector, at most %d are tried", Proof)
	}
	return Unlimited, ""
}
