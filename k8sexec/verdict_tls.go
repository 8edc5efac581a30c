package k8sexec

import (
	"fmt"
)

// ruleTLS: the registry's certificate is not accepted on this node, or one side
// speaks TLS and the other does not.
func ruleTLS(f failure) (judgement, bool) {
	if !f.inPull() || !f.says("x509:", "tls:", "remote error: tls", "server gave http response to https client", "certificate") || f.says("tls handshake timeout") {
		return judgement{}, false
	}
	return judgement{class: toElsewhere, says: fmt.Sprintf(
		"This node does not trust the registry of image %q, or does not reach it by TLS; configure the registry in the node's container runtime.", f.image)}, true
}
