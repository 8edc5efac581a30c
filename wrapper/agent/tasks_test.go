package agent_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"podstarter/payload"
	"podstarter/wrapper/agent/agenttest"
)

// Limits of a control group and of one payload in it.
const (
	groupTasks   = 1500
	payloadTasks = 200
)

// TestTooManyTasks: the wrapper kills the whole payload when the control group shows that
// it exceeds its limit, without a usage request.
func TestTooManyTasks(t *testing.T) {
	g := agenttest.NewGroup(t, groupTasks)
	w := agenttest.StartWrapper(t, g.Join)
	c := w.Dial(t)
	s := agenttest.Spec(t, "bomb")
	s.MaxTasks = payloadTasks
	start(t, c, s)
	exit, err := c.Wait(agenttest.Context(t))
	if err != nil || exit.Killed != payload.KilledTasks || syscall.WaitStatus(exit.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("%+v, %v", exit, err)
	}
	if err := c.Sweep(agenttest.Context(t)); err != nil {
		t.Error(err)
	}
	checkGone(t, w)
	s = agenttest.Spec(t, "exit", "3")
	s.MaxTasks = payloadTasks
	start(t, c, s)
	if exit, err := c.Wait(agenttest.Context(t)); err != nil || exit.Killed != "" || syscall.WaitStatus(exit.WaitStatus).ExitStatus() != 3 {
		t.Errorf("the next one: %+v, %v", exit, err)
	}
}

// TestTooManyTasksUnwatched: without a control group, a look notices it.
func TestTooManyTasksUnwatched(t *testing.T) {
	w := agenttest.StartWrapper(t, nil)
	c := w.Dial(t)
	s := agenttest.Spec(t, "tree")
	s.MaxTasks = 5
	start(t, c, s)
	agenttest.WaitTree(t, s)
	if _, err := c.Usage(agenttest.Context(t)); err != nil {
		t.Fatal(err)
	}
	exit, err := c.Wait(agenttest.Context(t))
	if err != nil || exit.Killed != payload.KilledTasks {
		t.Errorf("%+v, %v", exit, err)
	}
}

// TestForkBombBesideAWrapper: while a payload has used up the pod's processes, another
// wrapper still does what needs no process and refuses the rest; afterwards all works as
// before.
func TestForkBombBesideAWrapper(t *testing.T) {
	g := agenttest.NewGroup(t, groupTasks)
	w := agenttest.StartWrapper(t, g.Join)
	beside := agenttest.StartWrapper(t, g.Join)
	quiet := beside.Dial(t)
	uid, _ := agenttest.Payload()
	uid += 50_000_000 // nobody else's: see agenttest
	other := payload.Spec{Activation: "beside", UID: uid, GID: uid, Path: "/bin/sleep", Args: []string{"sleep", "600"}, Dir: "/"}
	start(t, quiet, other)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()

	c := w.Dial(t)
	start(t, c, agenttest.Spec(t, "bomb"))
	g.WaitFull(t)
	ctx := agenttest.Context(t)
	for range 20 {
		if u, err := quiet.Usage(ctx); err != nil || u.Processes != 1 {
			t.Fatalf("%+v, %v", u, err)
		}
		if err := quiet.Signal(ctx, syscall.SIGCONT, true); err != nil {
			t.Fatal(err)
		}
		if e, err := quiet.Exec(ctx, payload.Exec{Spec: other}, payload.ExecFiles{Stdio: [3]*os.File{null, null, null}}); err == nil {
			if err := e.Signal(ctx, syscall.SIGKILL); err != nil { // a process could start for a moment
				t.Fatal(err)
			}
			if _, err := e.Wait(ctx); err != nil {
				t.Fatal(err)
			}
		} else if s := (*payload.StartError)(nil); !errors.As(err, &s) || s.Stage != payload.StageFork {
			t.Fatal(err)
		}
	}
	if err := c.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	checkGone(t, w)
	if err := quiet.Sweep(ctx); err != nil {
		t.Error(err)
	}
	other.Path = "/bin/true"
	start(t, quiet, other)
	if exit, err := quiet.Wait(ctx); err != nil || exit.WaitStatus != 0 {
		t.Errorf("%+v, %v", exit, err)
	}
}
