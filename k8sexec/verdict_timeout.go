package k8sexec

import (
	"fmt"
)

// ruleTimeout: the binding took longer than it may, without a failure that the
// kubelet would have named. Mostly a large image on a slow network, or a pull
// that hangs: the kubelet handles one change of a pod at a time.
func ruleTimeout(f failure) (judgement, bool) {
	if f.reason != reasonTimeout {
		return judgement{}, false
	}
	return judgement{class: toElsewhere, says: fmt.Sprintf(
		"The payload container did not come up with image %q in time; the image may be large or its registry slow, then raise %s.", f.image, knobBindTimeout)}, true
}
