// Package job says what a job's ad means: the command line and environment of
// its process, its standard files, limits and signals, when it counts
// as successful, and what is told about it while it runs. It consists of plain
// functions over ads; it opens no file, asks nobody and starts nothing.
//
// The semantics are those of the stock starter of HTCondor 25.14; where a
// function follows one of its, the comment names it. Ads come from users and
// are not trusted: what is malformed is an error that says which attribute is
// wrong and how.
package job

import (
	"podstarter/classads"
)

// Knobs is what is read from the configuration; [podstarter/condor/config.Config]
// has it. The slot's ad is MY and the job's ad TARGET in expressions.
type Knobs interface {
	Lookup(name string) (string, bool)
	Bool(name string, def bool) (bool, error)
	Int(name string, def int64) (int64, error)
	EvalBool(name string, def bool, my, target *classads.Ad) (bool, error)
	EvalInt(name string, def int64, my, target *classads.Ad) (int64, error)
	EvalString(name, def string, my, target *classads.Ad) (string, error)
}

// Failure is an error that says what becomes of the job: a code below 1000
// puts it on hold, 0 or a code from 1000 on gives it back to the queue
// (condor_utils/condor_holdcodes.h).
type Failure struct {
	Code, Subcode int
	Err           error
}

func (f *Failure) Error() string { return f.Err.Error() }

func (f *Failure) Unwrap() error { return f.Err }
