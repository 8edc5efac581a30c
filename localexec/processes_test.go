package localexec_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/localexec"
	"podstarter/payload"
	"podstarter/payload/procfamily"
	"podstarter/wrapper/agent"
	"podstarter/wrapper/agent/agenttest"
)

// membersOf are the processes of a user.
func membersOf(t *testing.T, uid int) (pids []int) {
	t.Helper()
	members, err := procfamily.OfUser("/proc", uid).Members()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range members {
		pids = append(pids, p.PID)
	}
	return pids
}

// TestOwnProcesses: a payload that is to have a PID namespace has one, if this is root, and its lease ends as every other.
func TestOwnProcesses(t *testing.T) {
	uid, _ := agenttest.Payload()
	var said bytes.Buffer
	o := localexec.Options{Dir: filepath.Join(agenttest.PublicDir(t), "private"), UID: uid, Users: 1, Processes: true, Log: slog.New(slog.NewTextHandler(&said, nil))}
	b, err := localexec.New(o)
	if err != nil {
		t.Fatal(err)
	}
	l := lease(t, b)
	c, err := l.Bind(agenttest.Context(t), payload.BindRequest{Activation: "job", OwnProcesses: true})
	if err != nil {
		t.Fatal(err)
	}
	w, finding := c.Client(), b.Audit(agenttest.Context(t))[1]
	if !agenttest.Root() {
		if w.Hello().OwnProcesses || !strings.Contains(said.String(), "SYS_ADMIN") || finding.Grade != payload.Warn || !strings.Contains(finding.Detail, "USE_PID_NAMESPACES is not obeyed") || finding.Fix == "" {
			t.Errorf("%+v, %+v, log %s", w.Hello(), finding, said.String())
		}
		return
	}
	if !w.Hello().OwnProcesses || w.SeenPID() <= 1 || said.Len() > 0 {
		t.Fatalf("%+v, log %s", w.Hello(), said.String())
	}
	s := agenttest.Spec(t, "tree")
	started, err := w.Start(agenttest.Context(t), s)
	if err != nil {
		t.Fatal(err)
	}
	agenttest.WaitTree(t, s)
	if p, err := procfamily.Lookup("/proc", started.PID); err != nil || p.PPID != w.SeenPID() {
		t.Errorf("%+v, %v is not a child of %d", p, err, w.SeenPID())
	}
	if n := len(membersOf(t, uid)); n < agenttest.Leaves+1 { // parents of some of them may not have ended yet
		t.Errorf("%d processes", n)
	}
	if err := l.Release(agenttest.Context(t)); err != nil {
		t.Error(err)
	}
	if left := membersOf(t, uid); len(left) > 0 || processExists(w.SeenPID()) {
		t.Errorf("left: %v", left)
	}
	if f := b.Audit(agenttest.Context(t))[1]; f.Grade != payload.OK {
		t.Errorf("%+v", f)
	}
}

// TestWrapperOfNamespaceKilled: when somebody kills the wrapper, its payload is gone at once, and the lease hears of it.
func TestWrapperOfNamespaceKilled(t *testing.T) {
	if !agenttest.Root() {
		t.Skip("only root has PID namespaces; the same test runs as root")
	}
	l := lease(t, newBackend(t, 1))
	c, err := l.Bind(agenttest.Context(t), payload.BindRequest{Activation: "job", OwnProcesses: true})
	if err != nil {
		t.Fatal(err)
	}
	s := agenttest.Spec(t, "tree")
	if _, err := c.Client().Start(agenttest.Context(t), s); err != nil {
		t.Fatal(err)
	}
	agenttest.WaitTree(t, s)
	if err := unix.Kill(c.Client().SeenPID(), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case <-c.Lost():
	case <-agenttest.Context(t).Done():
		t.Fatal("nobody hears of it")
	}
	if left := membersOf(t, s.UID); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestStarterOfNamespaceKilled: a starter that is killed leaves nothing in the namespace.
func TestStarterOfNamespaceKilled(t *testing.T) {
	if !agenttest.Root() {
		t.Skip("only root has PID namespaces; the same test runs as root")
	}
	starterKilled(t, "own processes")
}

// TestNamespaceRefused: where the kernel refuses to show a namespace's processes, or to make a namespace, the payload runs without. Another
// failure is one.
func TestNamespaceRefused(t *testing.T) {
	if !agenttest.Root() {
		t.Skip("only root makes PID namespaces; the same test runs as root")
	}
	uid, _ := agenttest.Payload()
	for name, tt := range map[string]struct {
		script string
		runs   bool
	}{
		"/proc":     {fmt.Sprintf(`case "$*" in *-own-processes*) echo no mount >&2; exit %d;; esac`, agent.ExitNoProcesses), true},
		"by itself": {`case "$*" in *-own-processes*) exit 1;; esac`, false},
	} {
		program := filepath.Join(agenttest.PublicDir(t), "wrapper")
		text := fmt.Sprintf("#!/bin/bash\n%s\nexec -a %s %s \"$@\"\n", tt.script, agent.WrapperName, agenttest.Program())
		if err := os.WriteFile(program, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		b, err := localexec.New(localexec.Options{Dir: filepath.Join(agenttest.PublicDir(t), "private"), UID: uid, Users: 1, Processes: true, Program: program, Log: slog.New(slog.NewTextHandler(&said, nil))})
		if err != nil {
			t.Fatal(err)
		}
		l, err := b.Lease(agenttest.Context(t), payload.Wish{})
		if err != nil {
			t.Fatal(err)
		}
		c, err := l.Bind(agenttest.Context(t), payload.BindRequest{Activation: "job", OwnProcesses: true})
		if (err == nil) != tt.runs || tt.runs && (c.Client().Hello().OwnProcesses || !strings.Contains(said.String(), "/proc cannot be mounted")) {
			t.Errorf("%s: %v, log %s", name, err, said.String())
		}
		if err := l.Release(context.Background()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if f := b.Audit(agenttest.Context(t))[1]; f.Grade != payload.Warn || !strings.Contains(f.Detail, "USE_PID_NAMESPACES") {
			t.Errorf("%s: %+v", name, f)
		}
	}
}

// TestNamespaceWithoutRights: root without the capability runs payloads as before.
func TestNamespaceWithoutRights(t *testing.T) {
	if !agenttest.Root() {
		t.Skip("without root there is nothing to take away")
	}
	b := powerless(t)
	c, err := lease(t, b).Bind(agenttest.Context(t), payload.BindRequest{Activation: "job", OwnProcesses: true})
	if err != nil || c.Client().Hello().OwnProcesses {
		t.Errorf("%+v, %v", c, err)
	}
}

// powerless is a backend whose process has no right to mount.
func powerless(t *testing.T) *localexec.Backend {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var all [2]unix.CapUserData
	if err := unix.Capget(&header, &all[0]); err != nil {
		t.Fatal(err)
	}
	few := all
	few[0].Effective &^= 1 << unix.CAP_SYS_ADMIN
	if err := unix.Capset(&header, &few[0]); err != nil {
		t.Fatal(err)
	}
	uid, _ := agenttest.Payload()
	b, err := localexec.New(localexec.Options{Dir: filepath.Join(agenttest.PublicDir(t), "private"), UID: uid, Users: 1, Mounts: true})
	if err := errors.Join(err, unix.Capset(&header, &all[0])); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestProcessesUntried: while all users of payloads are busy, -check does not say that jobs see the machine's processes.
func TestProcessesUntried(t *testing.T) {
	if !agenttest.Root() {
		t.Skip("only root has users for payloads; the same test runs as root")
	}
	uid, _ := agenttest.Payload()
	b, err := localexec.New(localexec.Options{Dir: filepath.Join(agenttest.PublicDir(t), "private"), UID: uid, Users: 1, Processes: true})
	if err != nil {
		t.Fatal(err)
	}
	lease(t, b)
	if f := b.Audit(agenttest.Context(t))[1]; f.Grade != payload.Warn || strings.Contains(f.Detail, "not obeyed") || !strings.Contains(f.Detail, "in use") || !strings.Contains(f.Fix, "when") {
		t.Errorf("%+v", f)
	}
}
