package payloadrun_test

import (
	"os"
	"testing"

	"podstarter/sandbox"
)

// nobodysSandbox is one of a user to whom root gives it.
func nobodysSandbox(t *testing.T) *sandbox.Sandbox {
	t.Helper()
	execute, err := os.MkdirTemp("", "execute") // that user comes into it
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(execute) })
	must(t, os.Chmod(execute, 0o755))
	box, err := sandbox.Create(t.Context(), sandbox.Options{Execute: execute, PID: os.Getpid(), Payload: sandbox.Owner{UID: nobodys, GID: nobodys}, Condor: sandbox.Self()})
	must(t, err)
	return box
}

// TestFilesOfTheKernel: a job's standard file that is opened on the machine is opened with no right of root's, not even where the kernel asks who the
// effective user is.
func TestFilesOfTheKernel(t *testing.T) {
	const sysctl = "/proc/sys/kernel/domainname"
	before, err := os.ReadFile(sysctl)
	must(t, err)
	t.Cleanup(func() { _ = os.WriteFile(sysctl, before, 0o644) })
	for _, attr := range []string{"Out", "Err"} {
		t.Run(attr, func(t *testing.T) {
			j := aJob(t, attr+` = "`+sysctl+`"`, map[string]string{"MOUNT_UNDER_SCRATCH": "/var/tmp"})
			j.Info.FileTransfer = false
			if os.Getuid() == 0 {
				j.Sandbox = nobodysSandbox(t)
			}
			c, _, _, _ := container(t, &wrapper{mounts: true})
			must(t, j.MakeUnderScratch(c))
			_, spec, err := j.Main("a", "", nil)
			must(t, err)
			s, _, err := j.OpenStreams(t.Context(), nil, &spec)
			if err == nil {
				s.Close()
				t.Errorf("the job has %s open for writing", sysctl)
			}
		})
	}
}
