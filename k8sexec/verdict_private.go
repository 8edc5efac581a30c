package k8sexec

// rulePilotFiles: the private directory is of no use. It is what the leases rest
// on, so nothing can run without.
func rulePilotFiles(f failure) (judgement, bool) {
	if f.reason != reasonPrivateDir {
		return judgement{}, false
	}
	return judgement{class: toPilot, says: "The starter cannot use its private directory; " + knobPrivateDir +
		" must name a directory of the pilot container that root alone may write to."}, true
}
