package k8sexec

import (
	"fmt"
)

// ruleMountPoint: the image has something in the place where a volume of the pod
// goes, such as a file or a dangling symbolic link on the way to the sandbox, or a
// link that leads a volume to /proc. A volume that is gone from the node reads much
// the same. It cannot keep the wrapper from its own place.
func ruleMountPoint(f failure) (judgement, bool) {
	if f.origin != fromContainer || f.inPull() || !f.says("to rootfs at", "mounting", "mkdirat", "mountpoint", "cannot be mounted because") || f.says(onWrapper) ||
		!f.says("not a directory", "file exists", "too many levels of symbolic links", "read-only file system", "no such file or directory",
			"inside /proc", "not of type proc", "ordinary directory", "malicious path") {
		return judgement{}, false
	}
	return suspicion(toUser,
		fmt.Sprintf("The image %q has a file or link where the pod mounts a directory; the image must leave that path free.", f.image),
		"A volume of the pod cannot be mounted in the payload container, whatever the image; look at the node and at the pod's manifest."), true
}
