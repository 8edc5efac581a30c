package k8sexec

import (
	"fmt"
	"runtime"
)

// rulePlatform: the image exists, but not for this node's processor.
func rulePlatform(f failure) (judgement, bool) {
	if !f.inPull() || !f.says("no match for platform", "no matching manifest", "does not match the specified platform",
		"no image found in image index for architecture", "no image found in manifest list for architecture") {
		return judgement{}, false
	}
	return judgement{class: toUser, subcode: SubcodePlatform, says: fmt.Sprintf(
		"The image %q has no variant for %s/%s; build one, or require machines of the image's architecture.", f.image, runtime.GOOS, runtime.GOARCH)}, true
}
