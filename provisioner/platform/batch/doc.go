// Package batch makes units as jobs of a batch system, by three commands that the
// site names: one that submits, one that tells of all jobs, and one that cancels.
//
// All that must be known of a unit is with the batch system: its name is the
// job's name, and a note, one word without blanks, is an attribute or the comment
// of the job. The command that tells of the jobs prints both.
package batch
