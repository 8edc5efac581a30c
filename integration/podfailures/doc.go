// Package podfailures makes every known failure between a pilot and its payload container happen to a job, on a real
// cluster, and checks the result: who is blamed, which codes the job gets, what its user is told, and how soon.
//
// Most failures are real: a registry that misbehaves, a deleted pod, a killed process. Where a healthy node does not
// fail on request, a [Proxy] of this package between the execution points of these tests and the API server changes the
// answers. docs/operator/failures.md is written from the table here and from the measurements.
package podfailures
