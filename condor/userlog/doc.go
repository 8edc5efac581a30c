// Package userlog writes the event log of a job: the file that its user reads and that condor_wait and
// DAGMan follow (HTCondor src/condor_utils/condor_event.cpp, write_user_log.cpp). It knows the events that a
// starter writes by itself, in each form that HTCondor has for them. The shadow writes those of all other jobs.
package userlog
