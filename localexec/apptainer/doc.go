// Package apptainer runs jobs in images by the Apptainer, or SingularityCE, of the machine, as
// condor_starter does (condor_starter.V6.1/singularity.cpp).
//
// [Build] is a pure function: what the site says and what the job wants become a command and its
// environment. [Site.Probe] finds out whether the runtime works, by running it as a job would. The
// package knows neither HTCondor nor how its programs are started; who uses it brings both.
//
// A runtime here gains no rights: the payload has no_new_privs, so that an Apptainer that is
// installed setuid works only as far as it does without that, by user namespaces.
package apptainer
