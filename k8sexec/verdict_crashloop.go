package k8sexec

import (
	"fmt"
	"strings"
)

// ruleCrashLoop: containers of this binding start and end again at once. One such
// end may be an accident; more are the pod's fault, or the image has led the
// wrapper astray.
func ruleCrashLoop(f failure) (judgement, bool) {
	if f.origin != fromContainer || f.reason != reasonCrashLoop {
		return judgement{}, false
	}
	how := ""
	if f.exit != nil {
		how = ", with " + describeExit(f.exit)
		if words := strings.Join(strings.Fields(f.exit.Message), " "); words != "" {
			how += fmt.Sprintf(" (%.*s)", maxWords/2, words)
		}
	}
	j := suspicion(toPilot,
		fmt.Sprintf("The pod's wrapper ends as soon as it starts in image %q%s.", f.image, how),
		fmt.Sprintf("The wrapper in the payload container ends as soon as it starts%s; see the container's log.", how))
	j.again = f.tries < 2
	return j, true
}
