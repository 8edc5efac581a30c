package k8sexec

import (
	"fmt"
)

// rulePullStalled: the runtime gave up a pull that made no progress
// (containerd image_pull_progress_timeout), or was interrupted in it.
func rulePullStalled(f failure) (judgement, bool) {
	if !f.inPull() || !f.says("context canceled", "no progress", "operation was canceled") {
		return judgement{}, false
	}
	return judgement{class: toElsewhere, again: true, says: fmt.Sprintf("The pull of image %q stalled.", f.image)}, true
}
