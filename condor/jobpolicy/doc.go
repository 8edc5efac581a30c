// Package jobpolicy evaluates what a job and its site have said should happen to the job while it runs and when it
// ends: hold, remove, requeue (HTCondor src/condor_utils/user_job_policy.cpp, condor_user_policy.cpp). The shadow or the
// schedd evaluates the policies of other jobs; the starter of a job of the local universe does that itself.
package jobpolicy
