package round

import (
	"time"

	"podstarter/provisioner/backoff"
	"podstarter/provisioner/decision"
	"podstarter/provisioner/demand"
	"podstarter/provisioner/match"
	"podstarter/provisioner/offline"
	"podstarter/provisioner/platform"
)

// Report is what a round saw, decided and did.
type Report struct {
	At     time.Time
	Groups []demand.Group
	// Matches has, for each group, what is known of each shape.
	Matches [][]match.Result
	Shapes  []string // template/shape
	Units   []platform.Unit
	Input   decision.Input
	Output  decision.Output
	// Offline is the decision where units are made for matches of offline ads, and
	// Published how many of those were sent.
	Offline   *offline.Output
	Published int
	// Made and Withdrawn are the units that were made and withdrawn.
	Made, Withdrawn []string
	// Silent are units that have run for long and have never reported.
	Silent []Silent
	// Removed are units that ran and were ended, since they have never reported.
	Removed []string
	// Failed are the units of which this round learnt that they came to nothing.
	Failed []Failure
	// Smaller are the shapes whose pods offer less than they should.
	Smaller []Smaller
	// Backoff has the state of each template, in the order of the configuration.
	Backoff []backoff.State
	// Untaken says of each template how many pods no job has taken.
	Untaken []Untaken
	// Problems are what went wrong, and Err is all of it; the round did what was
	// possible all the same.
	Problems []Problem
	Err      error
	// Unknown: what is there was not known, so that nothing was decided.
	Unknown bool
	Took    time.Duration
}

// Failure is a unit that came to nothing.
type Failure struct {
	Unit, Template string
	Reason         backoff.Reason
	Detail         string // the platform's words
}

// Source is where something went wrong.
type Source string

// The sources.
const (
	Schedds     Source = "schedds"
	Collector   Source = "collector"
	Accountant  Source = "accountant"
	Platform    Source = "platform" // listing units
	Making      Source = "making"
	Withdrawing Source = "withdrawing"
)

// Sources are all sources.
var Sources = []Source{Schedds, Collector, Accountant, Platform, Making, Withdrawing}

// Problem is what went wrong at one place.
type Problem struct {
	Source Source
	Err    error
}

// note adds a problem, if there is one.
func (rep *Report) note(source Source, err error) {
	if err != nil {
		rep.Problems = append(rep.Problems, Problem{source, err})
	}
}
