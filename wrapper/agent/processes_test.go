package agent_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/payload"
	"podstarter/payload/procfamily"
	"podstarter/wrapper/agent/agenttest"
)

// ownPIDs starts a wrapper as localexec does for a job that is to see no others.
func ownPIDs(cmd *exec.Cmd) {
	cmd.Args = append(cmd.Args, "-companion", "-own-mounts", "-own-processes")
	cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWNS | unix.CLONE_NEWPID
}

func inNamespace(t *testing.T, change func(*exec.Cmd)) (*agenttest.Wrapper, *payload.Client) {
	t.Helper()
	if !agenttest.Root() {
		t.Skip("only root can make PID namespaces; the same test runs as root")
	}
	w := agenttest.StartWrapper(t, change)
	return w, w.Dial(t)
}

// numbers are a process's IDs in each PID namespace that it is in, from this one inwards; nil if it is not there.
func numbers(t *testing.T, pid int) []string {
	t.Helper()
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "\nNSpid:")
	line, _, _ := strings.Cut(after, "\n")
	return strings.Fields(line)
}

// TestOwnProcesses: the payload is a child of the first process, and sees nothing but its own; the starter sees it by the machine's numbers.
func TestOwnProcesses(t *testing.T) {
	w, c := inNamespace(t, ownPIDs)
	if hello := c.Hello(); hello.PID != 1 || !hello.OwnProcesses || c.SharesPIDNamespace() || c.SeenPID() != w.Cmd.Process.Pid {
		t.Fatalf("%+v, seen as %d, want %d", hello, c.SeenPID(), w.Cmd.Process.Pid)
	}
	out, err := runHere(t, c, "job", nil, `echo $PPID; set -- /proc/[0-9]*; echo $#; [ -e /proc/self/exe ] && cat /proc/1/comm; kill -0 $$ && echo alive`)
	if err != nil || out != "1\n2\ncondor_pod_wrap\nalive\n" { // the wrapper and sh
		t.Errorf("the payload found %q, %v", out, err)
	}
	s := agenttest.Spec(t, "sleep")
	started := start(t, c, s)
	if got, want := numbers(t, started.PID), []string{strconv.Itoa(started.PID), strconv.Itoa(started.OwnPID)}; !slices.Equal(got, want) || started.OwnPID <= 1 {
		t.Errorf("its numbers are %v, and the wrapper says %v", got, want)
	}
	uid, gid := agenttest.Payload()
	p := newPipes(t)
	x := execute(t, c, beside(payload.Spec{Activation: "session", UID: uid, GID: gid, Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}, Umask: 0o022}, fmt.Sprintf("kill -0 %d && kill -KILL %d", started.OwnPID, started.OwnPID)), p.ExecFiles)
	if status := execEnded(t, x); status != 0 {
		t.Errorf("a process beside it, which is to kill it, ended with %#x", status)
	}
	if exit, err := c.Wait(agenttest.Context(t)); err != nil || syscall.WaitStatus(exit.WaitStatus).Signal() != unix.SIGKILL || exit.Killed != "" {
		t.Errorf("%+v, %v", exit, err)
	}
}

// TestOwnProcessesEnds: what the payload ends with comes through as it is, whatever signal that is.
func TestOwnProcessesEnds(t *testing.T) {
	_, c := inNamespace(t, ownPIDs)
	for _, tt := range []struct {
		args []string
		want syscall.WaitStatus
	}{
		{[]string{"exit", "0"}, 0},
		{[]string{"exit", "143"}, 143 << 8},
		{[]string{"die", "9"}, 9},
		{[]string{"die", "15"}, 15},
		{[]string{"die", "1"}, 1},
	} {
		s := agenttest.Spec(t, tt.args...)
		start(t, c, s)
		if exit, err := c.Wait(agenttest.Context(t)); err != nil || syscall.WaitStatus(exit.WaitStatus) != tt.want {
			t.Errorf("%v: %+v, %v", tt.args, exit, err)
		}
	}
	out, err := runHere(t, c, "core", nil, `ulimit -c 0; kill -SEGV $$`)
	if err != nil || out != "" {
		t.Errorf("%q, %v", out, err)
	}
	// Signals come from outside, and an ordinary one is not lost on the way (the first process of a namespace ignores those without a handler).
	s := agenttest.Spec(t, "sleep")
	start(t, c, s)
	if err := c.Signal(agenttest.Context(t), syscall.SIGTERM, false); err != nil {
		t.Error(err)
	}
	if exit, err := c.Wait(agenttest.Context(t)); err != nil || syscall.WaitStatus(exit.WaitStatus) != 15 {
		t.Errorf("%+v, %v", exit, err)
	}
}

// TestOwnProcessesAttacked: nothing that a payload does inside reaches the first process or the machine, and nothing of it is left.
func TestOwnProcessesAttacked(t *testing.T) {
	w, c := inNamespace(t, ownPIDs)
	outside := fmt.Sprint(os.Getpid())
	for name, script := range map[string]string{
		"the first process":       `for s in TERM KILL STOP QUIT CHLD; do kill -$s 1 2>/dev/null && echo got through; done`,
		"all":                     `for s in TERM KILL STOP; do kill -$s -1 2>/dev/null; done`,
		"a process outside":       `kill -0 ` + outside + ` 2>/dev/null && [ -e /proc/` + outside + ` ] && grep -q agent.test /proc/` + outside + `/comm && echo got through`,
		"/proc":                   `umount /proc 2>/dev/null && echo got through; umount -l /proc 2>/dev/null && echo got through; mount -t tmpfs x /proc 2>/dev/null && echo got through`,
		"/proc, as its own root":  `unshare --user --map-root-user --mount sh -c 'umount -l /proc && echo got through' 2>/dev/null`,
		"the wrapper's files":     `for f in /proc/1/fd /proc/1/root/ /proc/1/mem /proc/1/environ; do ls $f/ >/dev/null 2>&1 && echo got through; cat $f >/dev/null 2>&1 && echo got through; done`,
		"the wrapper's namespace": `nsenter -t 1 -m true 2>/dev/null && echo got through; nsenter -t 1 -p true 2>/dev/null && echo got through`,
		"daemons":                 `for i in 1 2 3; do (trap '' TERM HUP INT; setsid sleep 1000 >/dev/null 2>&1 &) & done; wait`,
	} {
		out, err := runHere(t, c, "job", nil, script+"\ntrue")
		if err != nil || out != "" {
			t.Errorf("%s: %q, %v", name, out, err)
		}
		if _, err := c.Usage(agenttest.Context(t)); err != nil {
			t.Fatalf("%s: the wrapper does not answer: %v", name, err)
		}
	}
	start(t, c, agenttest.Spec(t, "assassin"))
	bomb := agenttest.Bomb(t, 300)
	if err := c.Sweep(agenttest.Context(t)); err != nil {
		t.Error(err)
	}
	checkGone(t, w)
	start(t, c, bomb)
	agenttest.WaitOutput(t, bomb, func(out string) bool { return strings.Contains(out, "ready") })
	if err := c.Sweep(agenttest.Context(t)); err != nil {
		t.Error(err)
	}
	checkGone(t, w)
	startTree(t, c)
	waitLeaves(t, c)
	if err := c.Sweep(agenttest.Context(t)); err != nil {
		t.Error(err)
	}
	checkGone(t, w)
}

// TestOwnProcessesReaped: the first process waits for orphans, and their CPU time counts, also as the machine sees it.
func TestOwnProcessesReaped(t *testing.T) {
	w, c := inNamespace(t, ownPIDs)
	s := agenttest.Spec(t)
	s.Path, s.Args = "/bin/sh", []string{"sh", "-c", "(sh -c 'i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done' &); exec sleep 1000"}
	s.Env = []string{"PATH=/usr/bin:/bin"}
	start(t, c, s)
	for ctx := agenttest.Context(t); ; {
		p, err := procfamily.Lookup("/proc", w.Cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		all, err := w.Family().All()
		if err != nil {
			t.Fatal(err)
		}
		if p.WaitedUserTicks+p.WaitedSystemTicks > 0 && len(all) == 1 {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("the wrapper has waited for %d ticks, and there are %+v", p.WaitedUserTicks+p.WaitedSystemTicks, all)
		}
	}
	if u, err := c.Usage(agenttest.Context(t)); err != nil || u.UserCPU+u.SystemCPU < 10e6 || u.Processes != 1 {
		t.Errorf("%+v, %v", u, err)
	}
}

// TestOwnProcessesKilled: the kernel kills all when the wrapper is killed.
func TestOwnProcessesKilled(t *testing.T) {
	w, c := inNamespace(t, ownPIDs)
	startTree(t, c)
	waitLeaves(t, c)
	if err := w.Cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	w.WaitEnd(t)
	checkGone(t, w) // wait(2) of a namespace's first process returns when the others are gone
}

// TestNestedNamespace: a payload that makes PID namespaces itself, as runtimes of images do, can do so if it can on the machine.
func TestNestedNamespace(t *testing.T) {
	const script = "unshare --user --map-root-user --pid --fork --mount-proc sh -c 'echo $$; set -- /proc/[0-9]*; echo $#' 2>&1"
	_, c := inNamespace(t, ownPIDs)
	out, err := runHere(t, c, "job", nil, script)
	if err != nil {
		t.Fatal(err)
	}
	want, err := runHere(t, agenttest.StartWrapper(t, ownNamespace).Dial(t), "job", nil, script)
	if err != nil || out != want {
		t.Errorf("it printed %q, and on the machine %q, %v", out, want, err)
	}
}

// TestCoversStay: what hides files of the machine's /proc hides them from the payload, too, and the machine's own /proc stays as it is.
func TestCoversStay(t *testing.T) {
	before, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	_, c := inNamespace(t, func(cmd *exec.Cmd) {
		ownPIDs(cmd)
		cmd.Args = append([]string{"sh", "-c", `mount --make-rprivate / && mount -t tmpfs -o ro hidden /proc/driver && mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys &&
			cd -P /proc/self && mount -t tmpfs process $PWD/task && mount --bind /dev/null /proc/timer_list && exec -a "$0" "$@"`, cmd.Args[0], cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/bash"
	})
	out, err := runHere(t, c, "job", nil, `ls /proc/driver; wc -c </proc/timer_list; awk '$5 ~ "^/proc" {print $5, substr($6, 1, 2)}' /proc/self/mountinfo | grep -vE 'binfmt_misc|task'`)
	want := "0\n" + strings.Repeat("/proc rw\n/proc/driver ro\n/proc/sys ro\n/proc/timer_list rw\n", 2) // the latter over the former
	if err != nil || out != want {
		t.Errorf("the payload found\n%s\nwant\n%s%v", out, want, err)
	}
	if after, err := os.ReadFile("/proc/self/mountinfo"); err != nil || string(after) != string(before) {
		t.Errorf("the machine has other mounts: %s, %v", after, err)
	}
}

// TestNoOwnProcesses: a wrapper that cannot have processes of its own says so by its exit code, and starts nothing.
func TestNoOwnProcesses(t *testing.T) {
	if !agenttest.Root() {
		t.Skip("only root can mount; the same test runs as root")
	}
	for name, args := range map[string][]string{"not the first process": {"-companion", "-own-mounts", "-own-processes"}, "no mounts": {"-companion", "-own-processes"}} {
		w := agenttest.StartWrapper(t, func(cmd *exec.Cmd) {
			cmd.Args = append(cmd.Args, args...)
			cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWNS
		})
		w.WaitEnd(t)
		want := 71
		if name == "no mounts" {
			want = 64
		}
		if got := w.Cmd.ProcessState.ExitCode(); got != want || w.Log.String() == "" {
			t.Errorf("%s: exit code %d, want %d: %s", name, got, want, w.Log)
		}
	}
}
