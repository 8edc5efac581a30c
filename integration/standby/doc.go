// Package standby tests that of several provisioners one makes pods, whatever
// becomes of it: with the real program, a real API server and its Leases, and the
// rights that the provisioner needs. HTCondor's tools are scripts here.
package standby
