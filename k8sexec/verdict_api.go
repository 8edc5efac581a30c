package k8sexec

import (
	"fmt"
	"net/http"
)

// ruleUnreachableAPI: the API server could not be reached, or did not serve, for
// as long as a binding waits for that.
func ruleUnreachableAPI(f failure) (judgement, bool) {
	if f.origin != fromAPI || f.code != 0 && f.code < http.StatusInternalServerError &&
		f.code != http.StatusTooManyRequests && f.code != http.StatusConflict {
		return judgement{}, false
	}
	return judgement{class: toElsewhere, says: "The Kubernetes API server cannot be used at the moment; the job may run elsewhere or later."}, true
}

// ruleRefusedPatch: any other refusal of the API server, for instance of a field
// that its version does not allow to change.
func ruleRefusedPatch(f failure) (judgement, bool) {
	if f.origin != fromAPI {
		return judgement{}, false
	}
	return judgement{class: toPilot, form: true, says: fmt.Sprintf("The Kubernetes API server refuses to put image %q into the pod.", f.image)}, true
}
