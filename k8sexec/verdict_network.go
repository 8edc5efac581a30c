package k8sexec

import (
	"fmt"
)

// ruleNetwork: no connection to the registry, or one that broke.
func ruleNetwork(f failure) (judgement, bool) {
	if !f.inPull() || !f.says("connection refused", "connection reset", "no route to host", "network is unreachable", "i/o timeout",
		"tls handshake timeout", "deadline exceeded", "timeout exceeded", "timed out", "unexpected eof", ": eof", "broken pipe",
		"connection closed", "goaway", "unexpected commit digest", "failed size validation", "proxyconnect") {
		return judgement{}, false
	}
	return judgement{class: toElsewhere, again: true, says: fmt.Sprintf("The registry of image %q cannot be reached from this node.", f.image)}, true
}
