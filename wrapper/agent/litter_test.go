package agent_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"podstarter/payload"
	"podstarter/wrapper/agent/agenttest"
)

// inShared is an unused name in /dev/shm.
func inShared(t *testing.T) string {
	t.Helper()
	name := filepath.Join("/dev/shm", fmt.Sprintf("%s-%d", t.Name(), os.Getpid()))
	t.Cleanup(func() { _ = exec.Command("rm", "-rf", name).Run() })
	return name
}

// litter runs a payload that leaves something, and waits for its end.
func litter(t *testing.T, c *payload.Client, args ...string) {
	t.Helper()
	s := agenttest.Spec(t, args...)
	start(t, c, s)
	exit, err := c.Wait(agenttest.Context(t))
	if err != nil || exit.WaitStatus != 0 {
		t.Fatalf("%+v, %v: %s", exit, err, agenttest.Output(t, s))
	}
}

func gone(t *testing.T, name string) {
	t.Helper()
	if _, err := os.Lstat(name); !os.IsNotExist(err) {
		t.Errorf("%s is still there (%v)", name, err)
	}
}

// TestDeepLeftovers: directories nested deeper than the wrapper's limit of open files do
// not keep the slot from the next job.
func TestDeepLeftovers(t *testing.T) {
	needRoot(t)
	const open, depth = 100, 5000
	w := agenttest.StartWrapper(t, func(cmd *exec.Cmd) {
		cmd.Args = append([]string{"bash", "-c", fmt.Sprintf(`ulimit -n %d; exec -a "$0" "$@"`, open), cmd.Args[0], cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/bash"
	})
	c := w.Dial(t)
	dir := inShared(t)
	litter(t, c, "deep", dir, strconv.Itoa(depth))
	if err := c.Sweep(agenttest.Context(t)); err != nil {
		t.Error(err)
	}
	gone(t, dir)
	c.Close()
	litter(t, w.Dial(t), "exit", "0")
}

// ownShared gives a wrapper its own /dev/shm.
func ownShared(cmd *exec.Cmd) {
	cmd.Args = append([]string{"bash", "-c", `mount -t tmpfs -o mode=1777 tmpfs /dev/shm && exec -a "$0" "$@"`, cmd.Args[0], cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/bash"
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
}

// TestManyLeftovers: a job cannot make the wrapper use much memory to remove its files,
// wherever they are.
func TestManyLeftovers(t *testing.T) {
	needRoot(t)
	const files, most = 120_000, 24 << 10 // KiB
	for _, dir := range []string{"/dev/shm", "/dev/shm/below"} {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			w := agenttest.StartWrapper(t, ownShared)
			c := w.Dial(t)
			s := agenttest.Spec(t)
			s.Path, s.Args = "/bin/bash", []string{"bash", "-c", fmt.Sprintf(`mkdir -p %[1]s; exec -a %[2]s %[3]s many %[1]s %[4]d`, dir, agenttest.JobName, agenttest.Program(), files)}
			start(t, c, s)
			exit, err := c.Wait(context.Background()) // machines are slow
			if err != nil || exit.WaitStatus != 0 {
				t.Fatalf("%+v, %v: %s", exit, err, agenttest.Output(t, s))
			}
			before := peak(t, w)
			if err := c.Sweep(context.Background()); err != nil {
				t.Fatal(err)
			}
			left, err := os.ReadDir(fmt.Sprintf("/proc/%d/root/dev/shm", w.Cmd.Process.Pid))
			if err != nil || len(left) > 0 {
				t.Errorf("%d files are left, %v", len(left), err)
			}
			if grown := peak(t, w) - before; grown > most {
				t.Errorf("removing %d files made the wrapper grow by %d KiB", files, grown)
			}
		})
	}
}

// peak is the largest resident set of a wrapper in KiB.
func peak(t *testing.T, w *agenttest.Wrapper) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.Cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "\nVmHWM:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kib
}

// TestNeighbourInLeftovers: a running payload of another slot that swaps entries in a
// directory that the payload left open to all can neither make the sweep fail nor misdirect
// it.
func TestNeighbourInLeftovers(t *testing.T) {
	needRoot(t)
	uid, gid := agenttest.Payload()
	other := uint32(uid + 1)
	dir := inShared(t)
	target := filepath.Join(agenttest.PublicDir(t), "target")
	precious := filepath.Join(target, "precious")
	if err := os.Mkdir(target, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(precious, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{target, precious} {
		if err := os.Chown(path, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	neighbour := exec.Command(agenttest.Program(), "swap", dir, target)
	neighbour.Args[0] = agenttest.JobName
	neighbour.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: other, Gid: other}}
	if err := neighbour.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = neighbour.Process.Kill()
		_ = neighbour.Wait()
		left, _ := filepath.Glob(fmt.Sprintf("/dev/shm/.left-by-%d.*", uid))
		_ = exec.Command("rm", append([]string{"-rf"}, left...)...).Run()
	})

	c := agenttest.StartWrapper(t, nil).Dial(t)
	for range 20 {
		s := agenttest.Spec(t)
		s.Path, s.Args = "/bin/sh", []string{"sh", "-c",
			fmt.Sprintf("umask 0; mkdir -p %[1]s/ours/a/b && until test -e %[1]s/moved1; do mkdir -p %[1]s/ours/c; done", dir)}
		start(t, c, s)
		if exit, err := c.Wait(agenttest.Context(t)); err != nil || exit.WaitStatus != 0 {
			t.Logf("%+v, %v: %s", exit, err, agenttest.Output(t, s)) // the neighbour interfered
		}
		if err := c.Sweep(agenttest.Context(t)); err != nil {
			t.Fatal(err)
		}
		if st, err := os.Lstat(dir); err == nil && int(st.Sys().(*syscall.Stat_t).Uid) == uid {
			t.Fatalf("%s is still there", dir)
		}
		if _, err := os.Lstat(precious); err != nil {
			t.Fatalf("the sweep followed a link: %v", err)
		}
		if st, err := os.Stat(target); err != nil || st.Mode().Perm() != 0o755 {
			t.Fatalf("the sweep followed a link: %v, %v", st.Mode(), err)
		}
	}
}
