// Package visitors lets the owner of a job look into it while it runs: sessions on which
// the owner's tools command this starter, condor_tail, and condor_ssh_to_job.
package visitors
