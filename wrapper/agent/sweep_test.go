package agent_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"podstarter/payload"
	"podstarter/payload/procfamily"
	"podstarter/wrapper/agent/agenttest"
)

// startTree starts a payload whose processes try to escape: in their own sessions, orphaned
// by a double fork, ignoring signals.
func startTree(t *testing.T, c *payload.Client) payload.Spec {
	t.Helper()
	s := agenttest.Spec(t, "tree")
	start(t, c, s)
	agenttest.WaitTree(t, s)
	return s
}

// waitLeaves waits until the wrapper counts a whole tree. The parents of the leaves end a
// moment after the leaves report.
func waitLeaves(t *testing.T, c *payload.Client) {
	t.Helper()
	ctx := agenttest.Context(t)
	for {
		u, err := c.Usage(ctx)
		if err != nil {
			t.Fatalf("waiting for %d processes: %v", agenttest.Leaves+1, err)
		}
		if u.Processes == agenttest.Leaves+1 {
			return
		}
		if u.Processes < agenttest.Leaves+1 {
			t.Fatalf("%d processes of %d are left: %+v", u.Processes, agenttest.Leaves+1, u)
		}
	}
}

// soon is how long a sweep may take: normally milliseconds, but machines may be busy.
const soon = 30 * time.Second

func TestSweep(t *testing.T) {
	w := agenttest.StartWrapper(t, nil)
	c := w.Dial(t)
	startTree(t, c)
	// A polite signal changes nothing.
	if err := c.Signal(agenttest.Context(t), syscall.SIGHUP, true); err != nil {
		t.Error(err)
	}
	begin := time.Now()
	if err := c.Sweep(agenttest.Context(t)); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > soon {
		t.Errorf("the sweep took %v", took)
	}
	checkGone(t, w)
	exit, err := c.Wait(agenttest.Context(t))
	if err != nil || exit.Killed != payload.KilledSweep || syscall.WaitStatus(exit.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("%+v, %v", exit, err)
	}
	if err := c.Sweep(agenttest.Context(t)); err != nil {
		t.Errorf("second sweep: %v", err)
	}
	start(t, c, agenttest.Spec(t, "exit", "0"))
}

func TestSweepAfterExit(t *testing.T) {
	w := agenttest.StartWrapper(t, nil)
	c := w.Dial(t)
	s := startTree(t, c)
	if err := c.Signal(agenttest.Context(t), syscall.SIGKILL, false); err != nil {
		t.Error(err)
	}
	exit, err := c.Wait(agenttest.Context(t))
	if err != nil || exit.Killed != "" {
		t.Errorf("%+v, %v", exit, err)
	}
	left, err := w.Family().Members()
	if err != nil || len(left) < agenttest.Leaves {
		t.Errorf("%d processes have outlived the main process, %v: %s", len(left), err, agenttest.Output(t, s))
	}
	if err := c.Signal(agenttest.Context(t), syscall.SIGTERM, false); !isRefusal(err, payload.CodeNoPayload) {
		t.Errorf("signal to a main process that has ended: %v", err)
	}
	if err := c.Sweep(agenttest.Context(t)); err != nil {
		t.Fatal(err)
	}
	checkGone(t, w)
}

func isRefusal(err error, code string) bool {
	var refused *payload.RequestError
	return errors.As(err, &refused) && refused.Code == code
}

// waitGone waits until no process of the payload is left.
func waitGone(t *testing.T, w *agenttest.Wrapper) {
	t.Helper()
	begin := time.Now()
	for time.Since(begin) < soon {
		left, err := w.Family().Members()
		if err != nil {
			t.Fatal(err)
		}
		if len(left) == 0 {
			return
		}
	}
	left, err := w.Family().Members()
	t.Errorf("left after %v: %+v, %v", soon, left, err)
}

func TestConnectionLost(t *testing.T) {
	w := agenttest.StartWrapper(t, nil)
	c := w.Dial(t)
	startTree(t, c)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	waitGone(t, w)
	next := w.Dial(t)
	exit, err := payload.ReadExit(w.Dir, "test")
	if err != nil || exit.Killed != payload.KilledLost {
		t.Errorf("%+v, %v", exit, err)
	}
	start(t, next, agenttest.Spec(t, "exit", "0"))
}

// TestConnectionLostWhileLaunching hits the launcher before and while it
// becomes the payload.
func TestConnectionLostWhileLaunching(t *testing.T) {
	w := agenttest.StartWrapper(t, nil)
	for i := range 20 {
		c := w.Dial(t)
		ctx, cancel := context.WithTimeout(agenttest.Context(t), time.Duration(i)*500*time.Microsecond)
		_, _ = c.Start(ctx, agenttest.Spec(t, "sleep"))
		cancel()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		w.Dial(t).Close() // nothing else tells that the sweep is over
		checkGone(t, w)
	}
}

// TestWrapperKilled leaves the payload to the parent death signal. Processes that the main
// process started become orphans; in a pod they end with the container.
func TestWrapperKilled(t *testing.T) {
	w := agenttest.StartWrapper(t, nil)
	c := w.Dial(t)
	s := agenttest.Spec(t, "stubborn")
	started := start(t, c, s)
	agenttest.WaitOutput(t, s, ready)
	if err := w.Cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Wait(agenttest.Context(t)); !errors.Is(err, payload.ErrLost) {
		t.Errorf("wait for the payload of a dead wrapper: %v", err)
	}
	// Orphans of the test's own reaper are zombies at most.
	ctx := agenttest.Context(t)
	for ctx.Err() == nil {
		if alive, err := procfamily.Lookup("/proc", started.PID); err != nil || alive.Dead() {
			return
		}
	}
	t.Error("the payload has outlived its wrapper")
}

func TestForkBomb(t *testing.T) {
	const most = 400 // processes
	w := agenttest.StartWrapper(t, nil)
	c := w.Dial(t)
	s := agenttest.Bomb(t, most)
	start(t, c, s)
	ctx := agenttest.Context(t)
	for n := 0; n < most/2; {
		u, err := c.Usage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		n = u.Processes
	}
	begin := time.Now()
	if err := c.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begin); took > soon {
		t.Errorf("the sweep took %v", took)
	}
	checkGone(t, w)
}

// TestAssassin sweeps a payload that keeps sending SIGKILL to every process it may signal.
// If the sweeper were one of them, the faster one would win.
func TestAssassin(t *testing.T) {
	if !agenttest.Root() {
		t.Skip("without root, the payload may kill its wrapper, this test, and more")
	}
	w := agenttest.StartWrapper(t, nil)
	c := w.Dial(t)
	for range 5 {
		s := agenttest.Spec(t, "assassin")
		start(t, c, s)
		agenttest.WaitOutput(t, s, ready)
		if err := c.Sweep(agenttest.Context(t)); err != nil {
			t.Fatal(err)
		}
		checkGone(t, w)
	}
}

func TestSignalWhole(t *testing.T) {
	w := agenttest.StartWrapper(t, nil)
	c := w.Dial(t)
	startTree(t, c)
	state := func(stopped bool) {
		t.Helper()
		ctx := agenttest.Context(t)
		for {
			members, err := w.Family().Members()
			if err != nil || ctx.Err() != nil {
				t.Fatalf("waiting for all to be stopped (%t): %+v, %v", stopped, members, err)
			}
			if !slices.ContainsFunc(members, func(p procfamily.Process) bool { return (p.State == 'T') != stopped }) {
				return
			}
		}
	}
	if err := c.Signal(agenttest.Context(t), syscall.SIGSTOP, true); err != nil {
		t.Error(err)
	}
	state(true)
	if err := c.Signal(agenttest.Context(t), syscall.SIGCONT, true); err != nil {
		t.Error(err)
	}
	state(false)
}

// inOwnNamespaces makes a command the first process of its namespaces. A shell
// mounts the /proc of the new one, as a container runtime does.
func inOwnNamespaces(cmd *exec.Cmd) {
	cmd.Args = append([]string{"sh", "-c", `mount -t proc proc /proc && exec -a "$0" "$@"`, cmd.Args[0], cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/bash"
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWCGROUP}
}

func TestUnsharedPIDNamespace(t *testing.T) {
	if !agenttest.Root() {
		t.Skip("needs root")
	}
	w := agenttest.StartWrapper(t, inOwnNamespaces)
	c := w.Dial(t)
	if c.Hello().PID != 1 || c.SharesPIDNamespace() {
		t.Fatalf("not in a PID namespace of its own: %+v", c.Hello())
	}
	// Its own view is useless outside; the file that it passes on shows ours.
	outside, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", w.Cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if c.Cgroups() != string(outside) || len(outside) == 0 {
		t.Errorf("its control groups are\n%s\nand it passed on\n%s", outside, c.Cgroups())
	}
	startTree(t, c)
	waitLeaves(t, c)
	if err := c.Sweep(agenttest.Context(t)); err != nil {
		t.Fatal(err)
	}
	checkGone(t, w)
	startTree(t, c)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	waitGone(t, w)
	w.SignalUntilEnd(t, syscall.SIGWINCH) // STOPSIGNAL of httpd
}

// TestFewCapabilities gives the wrapper only the capabilities that it needs; KILL is not
// one.
func TestFewCapabilities(t *testing.T) {
	setpriv, err := exec.LookPath("setpriv")
	if !agenttest.Root() || err != nil {
		t.Skip("needs root and setpriv")
	}
	w := agenttest.StartWrapper(t, func(cmd *exec.Cmd) {
		cmd.Args = append([]string{"setpriv", "--bounding-set=-all,+setuid,+setgid", "--no-new-privs", "bash", "-c", `exec -a "$0" "$@"`, cmd.Args[0], cmd.Path}, cmd.Args[1:]...)
		cmd.Path = setpriv
	})
	c := w.Dial(t)
	if !c.Hello().NoNewPrivs {
		t.Errorf("%+v", c.Hello())
	}
	startTree(t, c)
	if err := c.Signal(agenttest.Context(t), syscall.SIGKILL, false); err != nil {
		t.Error(err)
	}
	if _, err := c.Wait(agenttest.Context(t)); err != nil {
		t.Error(err)
	}
	if err := c.Sweep(agenttest.Context(t)); err != nil {
		t.Error(err)
	}
	checkGone(t, w)
	s := agenttest.Spec(t, "facts")
	if got := facts(t, c, s); got.UIDs != [3]int{s.UID, s.UID, s.UID} || got.Effective != "0000000000000000" {
		t.Errorf("%+v", got)
	}
	startTree(t, c)
	if err := c.Leave(agenttest.Context(t)); err != nil {
		t.Error(err)
	}
	w.WaitEnd(t)
	checkGone(t, w)
}

// TestMakeWay: the next wrapper's payload, with the same user ID, meets nothing that a
// killed wrapper left.
func TestMakeWay(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root has payloads with a user of their own")
	}
	s := agenttest.Spec(t, "exit", "0")
	earlier := exec.Command("/bin/sleep", "600")
	earlier.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(s.UID), Gid: uint32(s.GID)}}
	if err := earlier.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- earlier.Wait() }()
	t.Cleanup(func() { _ = earlier.Process.Kill() })
	shared, err := os.CreateTemp("/dev/shm", "makeway")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(shared.Name()) })
	if err := errors.Join(shared.Close(), os.Chown(shared.Name(), s.UID, s.GID)); err != nil {
		t.Fatal(err)
	}

	c := agenttest.StartWrapper(t, nil).Dial(t)
	start(t, c, s)
	if err := <-ended; err == nil || err.Error() != "signal: killed" {
		t.Errorf("the earlier payload ended with %v", err)
	}
	if _, err := os.Lstat(shared.Name()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the earlier payload's shared memory is still there (%v)", err)
	}
}
