package k8sexec

import (
	"fmt"
)

// ruleInvalidReference: the image's name does not parse, here or in the kubelet
// (reason InvalidImageName) or in the container runtime. If it was found out
// only there, the form with tag and digest may be what is not understood.
func ruleInvalidReference(f failure) (judgement, bool) {
	if f.origin != fromRequest && f.reason != reasonInvalidName &&
		!(f.inPull() && f.says("invalid reference format", "repository name must be lowercase", "failed to parse image reference",
			"references with both a tag and digest", "couldn't parse image")) {
		return judgement{}, false
	}
	return judgement{
		class: toUser, subcode: SubcodeInvalidReference, form: true,
		says: fmt.Sprintf("The image name %q is not valid; write it as registry/name:tag or registry/name@sha256:digest.", f.image),
	}, true
}
