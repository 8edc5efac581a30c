// Package failure says what an error means to the job: whether it is held or
// goes back to the queue, with which of HTCondor's codes, and whether the pod
// is to blame.
package failure
