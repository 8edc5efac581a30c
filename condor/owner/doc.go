// Package owner handles what a job's owner can ask of the starter that runs the
// job, and how the owner's tools get the right to ask.
//
// A starter cannot authenticate users. A tool such as condor_ssh_to_job or
// condor_tail therefore asks the schedd, which knows its users, for access to
// the starter. The schedd proves by the claim's secret that the job is its own,
// and has the starter create a security session that allows only what owners
// may do (condor_starter.V6.1/starter.cpp: createJobOwnerSecSession;
// condor_schedd.V6/schedd.cpp: get_job_connect_info_handler_implementation).
package owner
