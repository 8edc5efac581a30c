package agent_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"podstarter/payload"
	"podstarter/wrapper/agent"
	"podstarter/wrapper/agent/agenttest"
)

func TestMain(m *testing.M) {
	agenttest.Main(m, agenttest.Role{Name: pilotName, Run: asPilot}, agenttest.Role{Name: firstThreadName, Run: asFirstThread})
}

// start starts a payload and fails the test if that does not work.
func start(t *testing.T, c *payload.Client, s payload.Spec) payload.Started {
	t.Helper()
	started, err := c.Start(agenttest.Context(t), s)
	if err != nil {
		t.Fatal(err)
	}
	return started
}

// run starts a payload and waits for its end.
func run(t *testing.T, s payload.Spec) payload.Exit {
	t.Helper()
	c := agenttest.StartWrapper(t, nil).Dial(t)
	start(t, c, s)
	exit, err := c.Wait(agenttest.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	return exit
}

func ready(out string) bool { return strings.Contains(out, "ready\n") }

func TestHello(t *testing.T) {
	w := agenttest.StartWrapper(t, nil)
	c := w.Dial(t)
	got := c.Hello()
	if got.Boot == "" || got.PIDNamespace == "" {
		t.Errorf("incomplete: %+v", got)
	}
	if !c.SharesPIDNamespace() {
		t.Error("the wrapper seems to be in another PID namespace")
	}
	got.Boot, got.PIDNamespace, got.Version = "", "", ""
	inherited, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := payload.Hello{Protocol: payload.Protocol, Nonce: w.Nonce, PID: w.Cmd.Process.Pid, UID: os.Geteuid(), NoNewPrivs: inherited == 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestExitByCode(t *testing.T) {
	exit := run(t, agenttest.Spec(t, "exit", "42"))
	status := syscall.WaitStatus(exit.WaitStatus)
	if !status.Exited() || status.ExitStatus() != 42 {
		t.Errorf("wait status %#x instead of exit code 42", exit.WaitStatus)
	}
	if exit.Activation != "test" || exit.Killed != "" || !exit.Ended.After(exit.Started) {
		t.Errorf("%+v", exit)
	}
	if exit.UserCPU+exit.SystemCPU <= 0 || exit.UserCPU > time.Minute {
		t.Errorf("implausible usage: %+v", exit)
	}
}

// TestLargestResident: the payload's memory is reported, without the launcher's.
func TestLargestResident(t *testing.T) {
	spec := agenttest.Spec(t)
	spec.Path, spec.Args = "/bin/true", []string{"true"}
	if small := run(t, spec); small.MaxRSS != 0 {
		t.Errorf("%d bytes are reported for true(1); the launcher used them", small.MaxRSS)
	}
	const size = 200 << 20
	if large := run(t, agenttest.Spec(t, "memory", strconv.Itoa(size))); large.MaxRSS < size {
		t.Errorf("%d bytes are reported for a job that used %d", large.MaxRSS, size)
	}
}

func TestExitBySignal(t *testing.T) {
	exit := run(t, agenttest.Spec(t, "die", "15"))
	status := syscall.WaitStatus(exit.WaitStatus)
	if !status.Signaled() || status.Signal() != syscall.SIGTERM || status.CoreDump() {
		t.Errorf("wait status %#x instead of signal 15", exit.WaitStatus)
	}
}

func TestCoreFlag(t *testing.T) {
	s := agenttest.Spec(t, "die", "6")
	s.Path, s.Args = "/bin/sh", []string{"sh", "-c", "kill -ABRT $$"} // Go programs catch it
	s.Limits = []payload.Limit{{Resource: "core", Soft: payload.Unlimited, Hard: payload.Unlimited}}
	exit := run(t, s)
	status := syscall.WaitStatus(exit.WaitStatus)
	if !status.Signaled() || status.Signal() != syscall.SIGABRT {
		t.Fatalf("wait status %#x instead of signal 6", exit.WaitStatus)
	}
	cores, _ := filepath.Glob(filepath.Join(s.Dir, "core*"))
	if pattern, _ := os.ReadFile("/proc/sys/kernel/core_pattern"); strings.HasPrefix(string(pattern), "core") && (!status.CoreDump() || len(cores) == 0) {
		t.Errorf("no core dump (wait status %#x, files %v)", exit.WaitStatus, cores)
	}
}

func TestExitRecord(t *testing.T) {
	w := agenttest.StartWrapper(t, nil)
	c := w.Dial(t)
	start(t, c, agenttest.Spec(t, "exit", "3"))
	sent, err := c.Wait(agenttest.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-c.Lost()
	recorded, err := payload.ReadExit(w.Dir, "test")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sent, recorded); diff != "" {
		t.Error(diff)
	}
	info, err := os.Stat(filepath.Join(w.Dir, payload.ExitRecordName("test")))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v (%v)", info.Mode(), err)
	}
	if _, err := payload.ReadExit(w.Dir, "other"); !errors.Is(err, payload.ErrNoRecord) {
		t.Errorf("record of another activation: %v", err)
	}
}

func TestSeveralRuns(t *testing.T) {
	c := agenttest.StartWrapper(t, nil).Dial(t)
	s := agenttest.Spec(t, "exit", "1")
	for i, name := range []string{"before", "job", "job"} {
		s.Activation, s.Args[2] = name, string(rune('0'+i))
		start(t, c, s)
		exit, err := c.Wait(agenttest.Context(t))
		if err != nil || exit.Activation != name || syscall.WaitStatus(exit.WaitStatus).ExitStatus() != i {
			t.Errorf("%d: %+v, %v", i, exit, err)
		}
	}
}

func TestSecondStartRefused(t *testing.T) {
	c := agenttest.StartWrapper(t, nil).Dial(t)
	start(t, c, agenttest.Spec(t, "sleep"))
	_, err := c.Start(agenttest.Context(t), agenttest.Spec(t, "sleep"))
	var refused *payload.RequestError
	if !errors.As(err, &refused) || refused.Code != payload.CodeStarted {
		t.Error(err)
	}
}

func TestSecondConnectionRefused(t *testing.T) {
	w := agenttest.StartWrapper(t, nil)
	first := w.Dial(t)
	ctx, cancel := context.WithTimeout(agenttest.Context(t), 500*time.Millisecond)
	defer cancel()
	_, err := payload.Dial(ctx, payload.Options{Dir: w.Dir, Nonce: w.Nonce})
	if !errors.Is(err, payload.ErrBusy) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("second connection: %v", err)
	}
	if hello, err := payload.Peek(agenttest.Context(t), w.Dir); err != nil || !hello.Busy || hello.Boot != first.Hello().Boot {
		t.Errorf("peek at a busy wrapper: %+v, %v", hello, err)
	}
	start(t, first, agenttest.Spec(t, "exit", "0"))
	// A waiting connection is served as soon as the first has ended.
	second := make(chan error, 1)
	go func() {
		c, err := payload.Dial(agenttest.Context(t), payload.Options{Dir: w.Dir, Nonce: w.Nonce})
		if err == nil {
			err = c.Close()
		}
		second <- err
	}()
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if err := <-second; err != nil {
		t.Error(err)
	}
}

func TestLeave(t *testing.T) {
	w := agenttest.StartWrapper(t, nil)
	c := w.Dial(t)
	start(t, c, agenttest.Spec(t, "stubborn"))
	if err := c.Leave(agenttest.Context(t)); err != nil {
		t.Error(err)
	}
	w.WaitEnd(t)
	checkMadeWay(t, w)
	checkGone(t, w)
	if err := c.Signal(agenttest.Context(t), syscall.SIGTERM, false); !errors.Is(err, payload.ErrLost) {
		t.Errorf("signal after leave: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(w.Dir, payload.SocketName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
}

// TestStopSignals: without a starter the wrapper leaves at once, whatever signal
// the image names.
func TestStopSignals(t *testing.T) {
	// 37 is SIGRTMIN+3, the STOPSIGNAL of images with systemd.
	for _, sig := range []syscall.Signal{1, 2, 3, 10, 12, 15, 18, 20, 28, 30, 37, 64} {
		w := agenttest.StartWrapper(t, nil)
		c := w.Dial(t)
		start(t, c, agenttest.Spec(t, "exit", "0"))
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		// The Go runtime has a handler for most signals from the start, but drops them until
		// the wrapper asks for them; wait for the others.
		waitCaught(t, w.Cmd.Process.Pid, sig)
		w.SignalUntilEnd(t, sig)
		checkMadeWay(t, w)
	}
}

// TestStopWithPayload: the wrapper tells the starter. The job lives on, can be signalled
// and can end by itself; the wrapper leaves when the connection ends.
func TestStopWithPayload(t *testing.T) {
	w := agenttest.StartWrapper(t, nil)
	c := w.Dial(t)
	s := agenttest.Spec(t, "stubborn")
	start(t, c, s)
	agenttest.WaitOutput(t, s, ready)
	for range 2 {
		if err := w.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-c.Stopping():
	case <-agenttest.Context(t).Done():
		t.Fatal("the starter does not hear that the wrapper got a stop signal")
	}
	if _, err := os.Lstat(filepath.Join(w.Dir, payload.SocketName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
	if err := c.Signal(agenttest.Context(t), syscall.SIGCONT, true); err != nil {
		t.Errorf("the job cannot be signalled any more: %v", err)
	}
	if err := c.Sweep(agenttest.Context(t)); err != nil {
		t.Error(err)
	}
	exit, err := c.Wait(agenttest.Context(t))
	if err != nil || exit.Killed != payload.KilledSweep {
		t.Errorf("%+v, %v", exit, err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	w.WaitEnd(t)
	checkMadeWay(t, w)
	checkGone(t, w)
}

// checkMadeWay: after an exit with 0, the kubelet would not say why the next image of a
// sidecar cannot be pulled.
func checkMadeWay(t *testing.T, w *agenttest.Wrapper) {
	t.Helper()
	if got := w.Cmd.ProcessState; got.ExitCode() != agent.ExitLeft {
		t.Errorf("the wrapper made way with %v, want exit code %d", got, agent.ExitLeft)
	}
}

// TestStopAndLost: if the starter is gone too, the job does not outlive it.
func TestStopAndLost(t *testing.T) {
	w := agenttest.StartWrapper(t, nil)
	c := w.Dial(t)
	s := agenttest.Spec(t, "stubborn")
	start(t, c, s)
	agenttest.WaitOutput(t, s, ready)
	if err := w.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-c.Stopping()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	w.WaitEnd(t)
	checkGone(t, w)
}

// waitCaught waits until a process catches a signal.
func waitCaught(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	ctx := agenttest.Context(t)
	for ctx.Err() == nil {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(status), "SigCgt:")
		var caught uint64
		if _, err := fmt.Sscanf(rest, "%x", &caught); err != nil {
			t.Fatal(err)
		}
		if caught&(1<<(sig-1)) != 0 {
			return
		}
	}
	t.Errorf("signal %d is not caught", int(sig))
}

func TestReusedControlDirectory(t *testing.T) {
	w := agenttest.StartWrapper(t, nil)
	first := w.Dial(t).Hello()
	if err := w.Cmd.Process.Kill(); err != nil { // leaves its socket behind
		t.Fatal(err)
	}
	w.WaitEnd(t)
	dialled := make(chan *payload.Client, 1)
	go func() {
		c, err := payload.Dial(agenttest.Context(t), payload.Options{Dir: w.Dir, Nonce: "next"})
		if err != nil {
			t.Error(err)
		}
		dialled <- c
	}()
	agenttest.StartWrapperIn(t, w.Dir, func(cmd *exec.Cmd) { cmd.Env = []string{payload.NonceEnv + "=next"} })
	c := <-dialled
	if c == nil {
		t.FailNow()
	}
	defer c.Close()
	if c.Hello().Boot == first.Boot {
		t.Error("two wrappers with one boot ID")
	}
	left, err := filepath.Glob(filepath.Join(w.Dir, ".*sock*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestControlDirectoryIsClosed(t *testing.T) {
	public := filepath.Join(agenttest.PublicDir(t), "volume")
	if err := os.Mkdir(public, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(public, 0o777); err != nil { // the mode of an emptyDir
		t.Fatal(err)
	}
	w := agenttest.StartWrapperIn(t, filepath.Join(public, "payload"), nil)
	w.Dial(t)
	for _, dir := range []string{public, w.Dir} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", dir, info.Mode(), err)
		}
	}
	if info, err := os.Lstat(filepath.Join(w.Dir, payload.SocketName)); err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("socket: %v, %v", info.Mode(), err)
	}
}

// checkGone makes sure that no process of the payload is left.
func checkGone(t *testing.T, w *agenttest.Wrapper) {
	t.Helper()
	left, err := w.Family().Members()
	if err != nil || len(left) > 0 {
		t.Errorf("left: %+v, %v", left, err)
	}
}
