// Package job interprets a job's ad: the command line and environment of its
// process, its standard files, limits and signals, the rule for success, and the
// updates about it while it runs. It has only functions over ads: it opens no
// file, connects to nobody and starts nothing.
//
// The semantics are those of the stock starter of HTCondor 25.14; a function that
// follows one of its functions names it. Ads come from users and are not trusted:
// a malformed attribute is an error that says which one it is and what is wrong.
package job

import (
	"podstarter/classads"
)

// Knobs reads the configuration; [podstarter/condor/config.Config] implements it.
// In expressions, MY is the slot's ad and TARGET the job's ad.
type Knobs interface {
	Lookup(name string) (string, bool)
	Bool(name string, def bool) (bool, error)
	Int(name string, def int64) (int64, error)
	EvalBool(name string, def bool, my, target *classads.Ad) (bool, error)
	EvalInt(name string, def int64, my, target *classads.Ad) (int64, error)
	EvalString(name, def string, my, target *classads.Ad) (string, error)
}

// Failure is an error with the code that decides what happens to the job: a code
// from 1 to 999 puts it on hold, 0 or a code from 1000 on sends it back to the
// queue (condor_utils/condor_holdcodes.h).
type Failure struct {
	Code, Subcode int
	Err           error
}

func (f *Failure) Error() string { return f.Err.Error() }

func (f *Failure) Unwrap() error { return f.Err }
