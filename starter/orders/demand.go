package orders

import "podstarter/condor/shadow"

// Demand is one demand that the job end. The zero value is a demand without a
// reason that allows no delay.
type Demand struct {
	Reason        string // for VacateReason; empty when nothing was said
	Code, Subcode int    // HTCondor's vacate or hold code, 0 when none
	Hold          bool   // the job is to be put on hold with that code
	Remove        bool   // RemoveKillSig is due, not KillSig
	Urgency       Urgency
	Source        Source
	Lost          bool // nobody is left to report to; implies Cut
}

// Urgency is how much time a demand leaves.
type Urgency int

const (
	Hard Urgency = iota // the payload is killed
	Soft                // the job may end by itself after a signal
	Cut                 // and there is no time to finish a transfer either
)

// Source is who makes a demand; it decides whose reason is reported.
type Source int

const (
	Other  Source = iota
	Startd        // gives reasons in words: the last one counts
	Pod           // the cause of what others demand with the same code
)

func (d Demand) Error() string {
	if d.Reason == "" {
		return "the startd asked for the end of the job"
	}
	return d.Reason
}

// line is what the stock starter logs of a demand (starter.cpp:ShutdownGraceful,
// ShutdownFast, Remove, Hold).
func (d Demand) line() string {
	switch {
	case d.Urgency != Soft:
		return "ShutdownFast all jobs."
	case d.Hold:
		return "Hold all jobs"
	case d.Remove:
		return "Remove all jobs"
	}
	return "ShutdownGraceful all jobs."
}

// Manner is one way to ask a job to end by itself; each has a signal of its own.
type Manner int

const (
	Vacated Manner = iota
	Removed
	Held
	manners // how many there are
)

func (d Demand) manner() Manner {
	switch {
	case d.Hold:
		return Held
	case d.Remove:
		return Removed
	}
	return Vacated
}

// MayBeThePods says whether the end of the pod may be the cause of the demand, and nobody has said so yet.
func (d Demand) MayBeThePods() bool {
	return d.yields(Demand{Reason: "?", Code: shadow.VacateStartdShutdown, Source: Pod}) && !d.Remove && !d.Lost
}

// yields says whether a later demand is the one to report. A hold is: the shadow
// hears of it at once. The startd's last reason is
// (starter.cpp:remoteVacateCommand assigns it); of others, the first is
// (SetVacateReason). A demand without a reason gives way to one with a reason. A
// reason about the pod replaces the shutdown that it caused.
func (d *Demand) yields(later Demand) bool {
	switch {
	case d.Hold || later.Hold:
		return !d.Hold
	case later.Reason == "":
		return false
	case d.Reason == "":
		return true
	case later.Source == Pod:
		return d.Source != Pod && d.Code == later.Code
	}
	return later.Source == Startd && d.Source != Pod
}
