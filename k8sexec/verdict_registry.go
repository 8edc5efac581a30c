package k8sexec

import (
	"fmt"
	"regexp"
)

// serverError finds an answer of the class 5xx in a message.
var serverError = regexp.MustCompile(`(?i)\b(status|code|response)[^0-9\n]{0,40}\b5\d\d\b|\b5\d\d (internal server error|not implemented|bad gateway|service unavailable|service temporarily unavailable|gateway time-?out)`)

// ruleRegistryDown: the registry, its token server or a proxy answers that it
// cannot answer.
func ruleRegistryDown(f failure) (judgement, bool) {
	if !f.inPull() || f.reason != "RegistryUnavailable" && !serverError.MatchString(f.text) {
		return judgement{}, false
	}
	return judgement{class: toElsewhere, again: true, says: fmt.Sprintf("The registry of image %q is out of order.", f.image)}, true
}
