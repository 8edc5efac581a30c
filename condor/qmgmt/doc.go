// Package qmgmt writes into the job queue of a schedd, as the starter of a job of the local
// universe does (HTCondor src/condor_schedd.V6/qmgmt_send_stubs.cpp, qmgr_lib_support.cpp,
// qmgr_job_updater.cpp). It knows the calls, and which attributes of a job belong into the queue at
// which moment; it does not know how the job fares.
package qmgmt
