package k8sexec

import (
	"net/http"
)

// ruleNoSuchPod: the pod, or the payload container in it, does not exist under the
// configured name. The API server words the latter as an attempt to add a
// container (validation.go:ValidatePodUpdate).
func ruleNoSuchPod(f failure) (judgement, bool) {
	switch {
	case f.origin == fromAPI && f.code == http.StatusNotFound:
		return judgement{class: toPilot, says: "The pilot's pod does not exist under the configured name; correct " + knobPodName + " or " + knobPodNamespace + "."}, true
	case f.reason == reasonNoContainer,
		f.origin == fromAPI && f.code == http.StatusUnprocessableEntity && f.says("may not add or remove containers"):
		return judgement{class: toPilot, says: "The pod has no payload container of the configured name; correct " + knobContainers + "."}, true
	}
	return judgement{}, false
}
