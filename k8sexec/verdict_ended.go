package k8sexec

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// ruleContainerEnded: the container ended or was made anew under a running job.
func ruleContainerEnded(f failure) (judgement, bool) {
	if f.reason != reasonContainerEnd {
		return judgement{}, false
	}
	says := "The connection to the payload container's wrapper was lost while the job ran, and the job's processes end with it."
	if f.exit != nil {
		says = fmt.Sprintf("The payload container ended while the job ran, with %s, and the job's processes with it.", describeExit(f.exit))
	}
	return judgement{class: toElsewhere, says: says}, true
}

// describeExit puts the end of a container in words: "exit code 137 (OOMKilled)".
func describeExit(e *corev1.ContainerStateTerminated) string {
	text := fmt.Sprintf("exit code %d", e.ExitCode)
	if e.Signal != 0 {
		text = fmt.Sprintf("signal %d", e.Signal)
	}
	if e.Reason != "" {
		text += " (" + e.Reason + ")"
	}
	return text
}
