package verdict

import (
	"podstarter/k8sexec/options"
)

// rulePilotFiles: the private directory is unusable. The leases are kept there, so
// nothing can run without it.
func rulePilotFiles(f Failure) (Judgement, bool) {
	if f.Reason != ReasonPrivateDir {
		return Judgement{}, false
	}
	return Judgement{Class: ToPilot, Says: "The starter cannot use its private directory; " + options.KnobPrivateDir +
		" must name a directory of the pilot container that only root may write to."}, true
}

// ruleNoneFree: there are more activations than payload containers.
func ruleNoneFree(f Failure) (Judgement, bool) {
	if f.Reason != ReasonNoneFree {
		return Judgement{}, false
	}
	return Judgement{Class: ToElsewhere, Says: "All payload containers of the pod are in use: the startd has more slots than " + options.KnobContainers +
		" names containers. Install condor_config.d/95-podstarter-slots.conf, which makes it count them."}, true
}

// ruleStillAlive: a process of an earlier job in this container may be alive, and could
// read what the next job is given. A process that survives SIGKILL hangs in the kernel.
func ruleStillAlive(f Failure) (Judgement, bool) {
	if f.Reason != ReasonStillAlive {
		return Judgement{}, false
	}
	return Judgement{Class: ToElsewhere, Says: "An earlier job of this payload container may still be alive, so no other job starts in it."}, true
}

// ruleNotResized: the container could not get the memory that the job's slot has. The job
// would be held for using it.
func ruleNotResized(f Failure) (Judgement, bool) {
	if f.Reason != ReasonResize {
		return Judgement{}, false
	}
	return Judgement{Class: ToElsewhere, Says: "The payload container cannot get the memory that the job's slot has: its limits were not changed."}, true
}

// ruleOvertaken: somebody else has patched the container again and again.
func ruleOvertaken(f Failure) (Judgement, bool) {
	if f.Reason != ReasonOvertaken {
		return Judgement{}, false
	}
	return Judgement{Class: ToElsewhere, Says: "Somebody else binds images to the same payload container; no two pilots may share a pod or " +
		options.KnobPrivateDir + "."}, true
}
