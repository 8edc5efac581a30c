// Package simulation runs provisioners against a model of a pool and a cluster, in
// simulated time.
//
// The model has a queue of jobs, sites with nodes on which pods run, and a
// negotiator that gives free room to jobs by fair share. Two rules decide about
// pods: the one of package decision, and the one of the provisioner that sites use
// today (sfiligoi/prp-htcondor-portal). Everything is deterministic: a scenario,
// a rule and a seed give the same figures each time.
//
// What the model leaves out: transfer of files, the accountant's memory of past
// usage (a user's share is what runs now), and pods of others, except where a
// site is said to be full.
package simulation
