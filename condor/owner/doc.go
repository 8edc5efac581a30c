// Package owner is what a job's owner can ask of the starter that runs the job,
// and how the owner's tools come by the right to ask.
//
// A starter cannot authenticate users. A tool such as condor_ssh_to_job or
// condor_tail therefore asks the schedd, which knows its users, for a way to
// the starter. The schedd proves by the claim's secret that the job is its own,
// and has the starter make a security session that is good for what owners may
// do and for nothing else (condor_starter.V6.1/starter.cpp:
// createJobOwnerSecSession; condor_schedd.V6/schedd.cpp:
// get_job_connect_info_handler_implementation).
package owner
