package agent

import (
	"os"

	"golang.org/x/sys/unix"
)

// terminationLog is the kubelet's file for a container's last words; the kubelet copies it
// into the pod's status (core/v1, Container.TerminationMessagePath). The file system around
// it is the container runtime's, not the image's.
const terminationLog = "/dev/termination-log"

// maxLastWords is how many bytes the kubelet reads of it (kuberuntime,
// MaxContainerTerminationMessageLength).
const maxLastWords = 4096

// leaveWord writes why the wrapper cannot start. Readers cannot tell who wrote the text, so
// they must not trust it. Without such a file only the container's log has the reason.
func leaveWord(path string, why error) {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return
	}
	text := why.Error()
	_, _ = file.WriteString(text[:min(len(text), maxLastWords)])
}
