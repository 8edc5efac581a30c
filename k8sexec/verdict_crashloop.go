package k8sexec

import (
	"fmt"
)

// ruleCrashLoop: containers of this binding start and end again at once. The
// wrapper does not depend on the image, so something is wrong with the pod. One
// such end may be an accident.
func ruleCrashLoop(f failure) (judgement, bool) {
	if f.origin != fromContainer || f.reason != reasonCrashLoop {
		return judgement{}, false
	}
	says := "The wrapper in the payload container ends as soon as it starts; see the container's log."
	if f.exit != nil {
		says = fmt.Sprintf("The wrapper in the payload container ends as soon as it starts, with %s; see the container's log.", describeExit(f.exit))
	}
	return judgement{class: toPilot, again: f.tries < 2, says: says}, true
}
