package agent

import (
	"os"

	"golang.org/x/sys/unix"
)

// terminationLog is the kubelet's file for a container's last words, which it puts
// into the pod's status (core/v1, Container.TerminationMessagePath). The file
// system around it is the container runtime's, not the image's.
const terminationLog = "/dev/termination-log"

// maxLastWords is what the kubelet reads of it, in bytes
// (kuberuntime, MaxContainerTerminationMessageLength).
const maxLastWords = 4096

// leaveWord says why the wrapper cannot begin. Who reads it cannot tell who wrote
// it, and takes it for no more than words. Where there is no such file, the
// container's log has to do.
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
