// Package standin takes the place of the shadow of a job that has none: a startd that fetches work itself (FETCH_WORK hooks) starts
// this process with the job's ad on its standard input. The activation then runs the job as it runs any other without file
// transfer, and its calls to the shadow are answered here, in the same process, by a connection to itself. What a shadow would tell
// the schedd is told to nobody; the event log that the job names (StarterUserLog) is written
// (HTCondor src/condor_starter.V6.1/jic_local.cpp, jic_local_file.cpp, local_user_log.cpp).
package standin
