package k8sexec

import (
	"net/http"
)

// ruleForbidden: the API server knows the pilot's token but grants it too little,
// or does not know it.
func ruleForbidden(f failure) (judgement, bool) {
	if f.origin != fromAPI || f.code != http.StatusForbidden && f.code != http.StatusUnauthorized {
		return judgement{}, false
	}
	j := judgement{class: toPilot, says: "The pilot's service account lacks permission on its own pod; its Role must allow get, watch and patch on pods with this name."}
	if f.code == http.StatusUnauthorized {
		j.says = "The API server does not accept the pilot's token; check the projected token in " + knobKubernetesDir + "."
	}
	return j, true
}
