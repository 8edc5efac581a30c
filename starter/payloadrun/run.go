package payloadrun

import (
	"syscall"

	"podstarter/condor/java"
	"podstarter/payload"
)

// Run is the job's main process from its start to its end.
type Run struct {
	Started payload.Started
	Exit    *payload.Exit // nil while it runs
	Course  Course
	// Java is how the program of a job of the java universe ended; it is set with Exit.
	Java java.Ending
}

// Course is what has happened to a run. It only grows: an order to end counts for more
// than what the job did.
type Course int

const (
	Free    Course = iota // the job does what it likes
	Saving                // it was told to save a checkpoint
	Crowded               // it was killed for its number of processes
	Ordered               // it was made to end, or counts as if it was
)

// Becomes notes what has happened to the run.
func (r *Run) Becomes(c Course) { r.Course = max(r.Course, c) }

// Crowded says whether the run was killed for its number of processes.
func (r *Run) Crowded(exit payload.Exit) bool {
	return r.Course == Crowded || r.Course < Ordered && exit.Killed == payload.KilledTasks
}

// Ordered says whether the run was made to end.
func (r *Run) Ordered() bool { return r != nil && r.Course == Ordered }

// Requeued says whether the job is to run again: it was made to end, or its JVM failed.
func (r *Run) Requeued() bool { return r.Ordered() || r != nil && r.Java.Unfit != "" }

// Status is the wait status of its exit.
func (r *Run) Status() syscall.WaitStatus { return syscall.WaitStatus(r.Exit.WaitStatus) }
