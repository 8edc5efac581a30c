package verdict

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"podstarter/k8sexec/options"
)

// ruleTimeout: the binding took longer than it may, and the kubelet reported no
// failure. Mostly that is a large image on a slow network, or a pull that hangs: the
// kubelet handles one change of a pod at a time.
func ruleTimeout(f Failure) (Judgement, bool) {
	if f.Reason != ReasonTimeout {
		return Judgement{}, false
	}
	return Judgement{Class: ToElsewhere, Says: fmt.Sprintf(
		"The payload container did not come up with image %q in time; the image may be large or its registry slow, then raise %s.", f.Image, options.KnobBindTimeout)}, true
}

// ruleBusy: the kubelet never came to this job's container, since it was at another.
func ruleBusy(f Failure) (Judgement, bool) {
	if f.Reason != ReasonBusy {
		return Judgement{}, false
	}
	return Judgement{Class: ToElsewhere, Says: "The pod was busy with the image of another job all the time; with " + options.KnobPullers + " no job waits for another's image."}, true
}

// ruleSilentWrapper: a container of this binding runs, but the starter cannot talk to a
// wrapper in it; or the image hides the place where the wrapper listens.
func ruleSilentWrapper(f Failure) (Judgement, bool) {
	switch f.Reason {
	case ReasonUnusable:
		return suspicion(ToPilot,
			fmt.Sprintf("The starter cannot talk to the pod's wrapper in image %q.", f.Image),
			"The starter cannot talk to what runs in the payload container; check "+options.KnobControlDir+
				", and that starter and wrapper come from the same installation."), true
	case ReasonSilent:
	default:
		return Judgement{}, false
	}
	return suspicion(ToPilot,
		fmt.Sprintf("The pod's wrapper does not announce itself in image %q.", f.Image),
		"The payload container runs, but its wrapper does not announce itself with the binding's nonce; "+
			"check the container's command, its mount of "+options.KnobControlDir+" and its variable POD_STARTER_NONCE."), true
}

// ruleOutOfMemory: the payload container ran into its memory limit. On cgroup v2
// the kernel kills wrapper and job together (memory.oom.group).
func ruleOutOfMemory(f Failure) (Judgement, bool) {
	if f.Reason != ReasonOutOfMemory {
		return Judgement{}, false
	}
	return Judgement{Class: ToUser, Subcode: SubcodeOutOfMemory,
		Says: "The job used more memory than its container may have, and was killed; request more memory."}, true
}

// ruleContainerEnded: the container ended or was made anew under a running job.
func ruleContainerEnded(f Failure) (Judgement, bool) {
	if f.Reason != ReasonContainerEnd {
		return Judgement{}, false
	}
	says := "The connection to the payload container's wrapper was lost while the job ran, and the job's processes end with it."
	if f.Exit != nil {
		says = fmt.Sprintf("The payload container ended while the job ran, with %s, and the job's processes with it.", DescribeExit(f.Exit))
	}
	return Judgement{Class: ToElsewhere, Says: says}, true
}

// DescribeExit describes the end of a container: "exit code 137 (OOMKilled)".
func DescribeExit(e *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("exit code %d", e.ExitCode)
	if e.Signal != 0 {
		text = fmt.Sprintf("signal %d", e.Signal)
	}
	if e.Reason != "" {
		text += " (" + e.Reason + ")"
	}
	return text
}

// ruleCrashLoop: containers of this binding start and end again at once. One such end
// may be an accident; more are the fault of the pod, or of an image that misleads the
// wrapper.
func ruleCrashLoop(f Failure) (Judgement, bool) {
	if f.Origin != FromContainer || f.Reason != ReasonCrashLoop {
		return Judgement{}, false
	}
	how := ""
	if f.Exit != nil {
		how = ", with " + DescribeExit(f.Exit)
		if words := strings.Join(strings.Fields(f.Exit.Message), " "); words != "" {
			how += fmt.Sprintf(" (%.*s)", maxWords/2, words)
		}
	}
	j := suspicion(ToPilot,
		fmt.Sprintf("The pod's wrapper ends as soon as it starts in image %q%s.", f.Image, how),
		fmt.Sprintf("The wrapper in the payload container ends as soon as it starts%s; see the container's log.", how))
	j.Again = f.Tries < 2
	return j, true
}
