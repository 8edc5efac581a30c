package payloadrun_test

import (
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

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

// onTheMachine opens the standard files of a job that are on the machine.
func onTheMachine(t *testing.T, attributes string, appends bool) ([]*os.File, error) {
	t.Helper()
	j := aJob(t, attributes, map[string]string{"MOUNT_UNDER_SCRATCH": "/var/tmp"})
	j.Info.FileTransfer = false
	c, _, _, _ := container(t, &wrapper{mounts: true})
	must(t, j.MakeUnderScratch(c))
	_, spec, err := j.Main("a", "", nil)
	must(t, err)
	spec.Append = appends
	s, files, err := j.OpenStreams(t.Context(), nil, &spec)
	if err == nil {
		t.Cleanup(s.Close)
	}
	return files, err
}

// TestAppendOnTheMachine: what earlier runs wrote stays, where the job wants that.
func TestAppendOnTheMachine(t *testing.T) {
	out := t.TempDir() + "/out"
	must(t, os.WriteFile(out, []byte("old "), 0o644))
	files, err := onTheMachine(t, `Out = "`+out+`"`, true)
	must(t, err)
	_, err = files[0].WriteString("new")
	must(t, err)
	if text, err := os.ReadFile(out); err != nil || string(text) != "old new" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestPipeOnTheMachine: a pipe without a peer does not delay the start, and the job has it as it expects to.
func TestPipeOnTheMachine(t *testing.T) {
	pipe := t.TempDir() + "/pipe"
	must(t, unix.Mkfifo(pipe, 0o600))
	opened := make(chan *os.File, 1)
	go func() {
		files, err := onTheMachine(t, `In = "`+pipe+`"`, false)
		if err != nil {
			t.Error(err)
			close(opened)
			return
		}
		opened <- files[0]
	}()
	var in *os.File
	select {
	case in = <-opened:
	case <-time.After(10 * time.Second):
		t.Error("the start waits for the pipe's other end")
		peer, err := os.OpenFile(pipe, os.O_WRONLY, 0) // which ends the wait
		must(t, err)
		defer peer.Close()
		in = <-opened
	}
	if in == nil {
		return
	}
	raw, err := in.SyscallConn()
	must(t, err)
	must(t, raw.Control(func(fd uintptr) {
		if flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK != 0 {
			t.Errorf("flags %#x, %v: the job's reads would fail instead of waiting", flags, err)
		}
	}))
}
