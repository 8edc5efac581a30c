//nolint:forbidigo,errcheck // test programs, in temporary directories, with output to be read
package agenttest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Group is a control group with a limit, like a pod's or a container's.
type Group struct {
	dir     string
	version int
}

// NewGroup makes one with a limit of processes and threads. It skips the test on machines where
// this is not possible.
func NewGroup(t testing.TB, most int) *Group {
	t.Helper()
	g := newGroup(t, "pids")
	g.Limit(t, most)
	return g
}

// NewMemoryGroup makes one with a limit of memory in bytes. With whole, the kernel kills all of
// it for want of memory, as the kubelet wants it; that needs version 2. It skips the test on
// machines where this is not possible.
func NewMemoryGroup(t testing.TB, most int64, whole bool) *Group {
	t.Helper()
	g := newGroup(t, "memory")
	files := map[string]string{"memory.max": fmt.Sprint(most), "memory.oom.group": "0"}
	if g.version == 1 {
		files = map[string]string{"memory.limit_in_bytes": fmt.Sprint(most)}
	}
	if whole {
		if g.version == 1 {
			t.Skip("version 1 kills processes one by one")
		}
		files["memory.oom.group"] = "1"
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(g.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// Version is 1 or 2.
func (g *Group) Version() int { return g.version }

// newGroup makes one of a controller.
func newGroup(t testing.TB, controller string) *Group {
	t.Helper()
	if !Root() {
		t.Skip("needs root")
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	var top string
	version := 2
	for line := range strings.Lines(string(mounts)) {
		f := strings.Fields(line)
		switch {
		case len(f) < 4:
		case f[2] == "cgroup" && strings.Contains(","+f[3]+",", ","+controller+","):
			top, version = f[1], 1
		case f[2] == "cgroup2" && top == "":
			if controllers, _ := os.ReadFile(filepath.Join(f[1], "cgroup.subtree_control")); strings.Contains(string(controllers), controller) {
				top = f[1]
			}
		}
	}
	if top == "" {
		t.Skipf("needs control groups with the controller %s", controller)
	}
	g := &Group{filepath.Join(top, fmt.Sprintf("agenttest-%d-%s", os.Getpid(), strings.NewReplacer("/", "-", ",", "").Replace(t.Name()))), version}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		t.Skipf("needs control groups that can be made: %v", err)
	}
	t.Cleanup(func() {
		ctx := Context(t)
		for os.Remove(g.dir) != nil { // busy until the last process is reaped
			select {
			case <-time.After(10 * time.Millisecond):
			case <-ctx.Done():
				t.Errorf("control group %s is not empty", g.dir)
				return
			}
		}
	})
	return g
}

// Limit allows the group this many processes and threads from now on. Below the present
// number, all go on but nothing new can start.
func (g *Group) Limit(t testing.TB, most int) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, "pids.max"), fmt.Append(nil, most), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Join makes a command start as a member.
func (g *Group) Join(cmd *exec.Cmd) {
	cmd.Args = append([]string{"bash", "-c", `echo $$ >"` + filepath.Join(g.dir, "cgroup.procs") + `" && exec -a "$0" "$@"`, cmd.Args[0], cmd.Path}, cmd.Args[1:]...)
	cmd.Path = "/bin/bash"
}

// WaitFull waits until the kernel has refused members a process or thread more than once.
func (g *Group) WaitFull(t testing.TB) {
	t.Helper()
	ctx := Context(t)
	for ctx.Err() == nil {
		var refused int
		data, err := os.ReadFile(filepath.Join(g.dir, "pids.events"))
		if err == nil {
			_, err = fmt.Sscanf(string(data), "max %d", &refused)
		}
		if err != nil {
			t.Fatal(errors.Join(errors.New("look at the control group"), err))
		}
		if refused > 1000 {
			return
		}
	}
	t.Fatal("the control group was never full")
}
