// Package localjob is the life of a job of the local universe: a schedd starts this process with the job's ad on its standard
// input, and the job runs beside it, on the access point, as its owner. There is no shadow: the process writes the job's
// event log, evaluates its policies and tells the schedd by the job queue and its exit code what becomes of the job
// (HTCondor src/condor_starter.V6.1/jic_local_schedd.cpp, jic_local.cpp, jic_local_file.cpp).
package localjob
