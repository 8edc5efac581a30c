package k8sexec

import (
	"fmt"
)

// ruleBadImage: what the registry gave is no image that can be run.
func ruleBadImage(f failure) (judgement, bool) {
	if !f.inPull() || !f.says("failed to extract layer", "failed to unpack image on snapshotter", "invalid tar header", "unsupported manifest", "unsupported media type",
		"unknown media type", "unexpected media type", "mismatched image rootfs", "wrong diff id", "not a container image", "schema 1", "schema1") {
		return judgement{}, false
	}
	return judgement{class: toUser, subcode: SubcodeBadImage, says: fmt.Sprintf(
		"The image %q cannot be unpacked; it is damaged, or not a container image.", f.image)}, true
}
