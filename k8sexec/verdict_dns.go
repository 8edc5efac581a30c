package k8sexec

import (
	"fmt"
)

// ruleDNS: the registry's name does not resolve on this node. It may be misspelt,
// but nodes whose resolver is broken say the same.
func ruleDNS(f failure) (judgement, bool) {
	if !f.inPull() || !f.says("no such host", "server misbehaving", "name resolution", "lookup ") {
		return judgement{}, false
	}
	return judgement{class: toElsewhere, again: true, says: fmt.Sprintf(
		"The name of the registry in %q cannot be resolved on this node; check its spelling if this happens everywhere.", f.image)}, true
}
