package backendtest

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"podstarter/payload"
	"podstarter/wrapper/agent/agenttest"
)

// payloads: several can run in a container one after the other. Their exits and usage are
// reported correctly.
func payloads(t *testing.T, f Fixture) {
	l := lease(t, f.Backend)
	c := bound(t, l, "")
	if exit := start(t, l, c, "exit", "7").wait(); syscall.WaitStatus(exit.WaitStatus).ExitStatus() != 7 {
		t.Errorf("exit %+v, want 7", exit)
	}
	j := start(t, l, c, "sleep")
	if err := c.Client().Signal(agenttest.Context(t), syscall.SIGTERM, false); err != nil {
		t.Error(err)
	}
	if exit := j.wait(); syscall.WaitStatus(exit.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("exit %+v, want SIGTERM", exit)
	}
	if err := c.Client().Signal(agenttest.Context(t), syscall.SIGTERM, false); err == nil {
		t.Error("signalling a process that has ended succeeded")
	}
	const burnt = 200 * time.Millisecond
	if exit := start(t, l, c, "burn", "200").wait(); exit.WaitStatus != 0 {
		t.Errorf("exit %+v", exit)
	}
	usage, err := c.Client().Usage(agenttest.Context(t))
	if used := usage.UserCPU + usage.SystemCPU; err != nil || used < burnt || used > 100*burnt {
		t.Errorf("usage %+v, %v; want a little more than %s", usage, err, burnt)
	}
	s := agenttest.Spec(t, "exit", "0")
	s.UID, s.GID = l.Owner()
	s.Path = "/nonexistent"
	_, err = c.Client().Start(agenttest.Context(t), s)
	if failure := (*payload.StartError)(nil); !errors.As(err, &failure) {
		t.Errorf("a program that does not exist: %v", err)
	}
	start(t, l, c, "exit", "0").wait()
	notLost(t, c)
}

// sweep: no process of a payload is alive after a sweep, and the container accepts another
// payload.
func sweep(t *testing.T, f Fixture) {
	l := lease(t, f.Backend)
	c := bound(t, l, "")
	for range 2 {
		j := start(t, l, c, "tree")
		j.sweep()
		if alive := j.alive(); len(alive) > 0 {
			t.Errorf("processes %v have outlived the sweep", alive)
		}
		if exit := j.wait(); syscall.WaitStatus(exit.WaitStatus).Signal() != syscall.SIGKILL {
			t.Errorf("exit %+v, want SIGKILL", exit)
		}
	}
	notLost(t, c)
}

// execution: a process beside the payload can be started and signalled.
func execution(t *testing.T, f Fixture) {
	l := lease(t, f.Backend)
	c := bound(t, l, "")
	j := start(t, l, c, "sleep")
	e := payload.Exec{Spec: agenttest.Spec(t, "sleep")}
	e.Spec.UID, e.Spec.GID = l.Owner()
	e.Spec.Dir, e.Spec.Stdout, e.Spec.Stderr, e.Spec.Activation = "/", "", "", j.spec.Activation
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0) //nolint:forbidigo // of the system
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	x, err := c.Client().Exec(agenttest.Context(t), e, payload.ExecFiles{Stdio: [3]*os.File{null, w, null}})
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if x.PID() <= 0 {
		t.Errorf("process %d", x.PID())
	}
	if n, err := r.Read(make([]byte, 1)); n != 1 { // it says "ready"
		t.Fatal(err)
	}
	if err := x.Signal(agenttest.Context(t), syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if status, err := x.Wait(agenttest.Context(t)); err != nil || status.Signal() != syscall.SIGTERM {
		t.Errorf("status %v, %v; want SIGTERM", status, err)
	}
	j.goesOn()
	j.sweep()
}
