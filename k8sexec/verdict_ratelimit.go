package k8sexec

import (
	"fmt"
)

// ruleRateLimit: the registry serves only so many requests. The kubelet's next
// attempts would only make it worse.
func ruleRateLimit(f failure) (judgement, bool) {
	if !f.inPull() || !f.says("429 too many requests", "toomanyrequests", "rate limit", "pull qps exceeded", "status code 429") {
		return judgement{}, false
	}
	// The kubelet's own limit (registryPullQPS) is over in a moment.
	return judgement{class: toElsewhere, again: f.says("pull qps exceeded"),
		says: fmt.Sprintf("The registry of image %q has had too many requests from here; use a mirror, or give the pod credentials.", f.image)}, true
}
