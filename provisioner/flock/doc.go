// Package flock finds out by submitter ads whose jobs the pool's negotiator serves.
//
// A schedd sends one submitter ad for each of its submitters to each collector that
// it advertises to. The ad says how many idle jobs the negotiator of that collector
// is to serve. A schedd that flocks (FLOCK_TO) sends its schedd ad to the other
// pools' collectors at all times, and a submitter ad only while the submitter's jobs
// are to run there: after the negotiators of the pools before had no slots for them
// (HTCondor src/condor_schedd.V6/schedd.cpp:count_jobs, fill_submitter_ad). The ad
// has a SubmitterTag then, which is the name that the schedd has for the pool; in
// ads for a schedd's own pool it is empty.
//
// So a schedd without a submitter ad has no jobs for the negotiator, and of the jobs
// of one that flocks no more count than it asks for.
package flock
