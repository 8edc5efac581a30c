package k8sexec

import (
	"fmt"
)

// ruleMountPoint: the image has something in the place where a volume of the pod
// goes, such as a file or a dangling symbolic link on the way to the sandbox.
func ruleMountPoint(f failure) (judgement, bool) {
	if f.origin != fromContainer || f.inPull() || !f.says("to rootfs at", "mounting", "mkdirat", "mountpoint") ||
		!f.says("not a directory", "file exists", "too many levels of symbolic links", "read-only file system", "no such file or directory") {
		return judgement{}, false
	}
	return judgement{class: toUser, subcode: SubcodeBadImage,
		says: fmt.Sprintf("The image %q has a file or link where the pod mounts a directory; the image must leave that path free.", f.image)}, true
}
