// Package demand reads which jobs wait for a slot.
//
// It asks the schedd to group its idle jobs (condor_q -group-by), as the
// negotiator has them grouped: by the attributes that decide what a job matches.
// The schedd adds the attributes to which those refer, so that one ad says all
// that is needed to match the jobs of a group. What is sent and kept depends on
// the number of groups, not on that of jobs.
package demand
