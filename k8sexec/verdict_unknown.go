package k8sexec

import (
	"fmt"
)

// ruleUnknown: everything else. To hold a job for something that nobody
// recognised would be wrong as often as not.
func ruleUnknown(f failure) (judgement, bool) {
	return judgement{class: toElsewhere, again: f.origin == fromContainer, form: f.inPull(),
		says: fmt.Sprintf("The payload container could not be started with image %q.", f.image)}, true
}
