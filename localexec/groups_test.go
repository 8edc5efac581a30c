package localexec_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/localexec"
	"podstarter/localexec/group"
	"podstarter/payload"
	"podstarter/wrapper/agent/agenttest"
)

// groupSite is where this machine can make control groups of version 2, with whatever controllers.
func groupSite(t *testing.T) group.Site {
	t.Helper()
	for _, top := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
		site := group.Site{Base: fmt.Sprintf("localexectest-%d-%s", os.Getpid(), strings.ReplaceAll(t.Name(), "/", "-")), Top: top}
		place, err := group.Find(site)
		if err != nil {
			continue
		}
		t.Cleanup(func() {
			if err := os.Remove(place.Path()); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
			place.Close()
		})
		return site
	}
	t.Skip("needs root and version 2 of control groups")
	return group.Site{}
}

func groupedBackend(t *testing.T, site group.Site, processes bool) (*localexec.Backend, payload.BindRequest) {
	t.Helper()
	uid, _ := agenttest.Payload()
	b, err := localexec.New(localexec.Options{Dir: filepath.Join(agenttest.PublicDir(t), "private"), UID: uid, Users: 1, Groups: site, Mounts: processes})
	if err != nil {
		t.Fatal(err)
	}
	return b, payload.BindRequest{Activation: "job1", OwnProcesses: processes, Group: &payload.Group{Name: "slot1@host"}}
}

// groupOf is a process's group of version 2.
func groupOf(t *testing.T, pid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			return path
		}
	}
	return ""
}

// TestGroup: all of the payload is in the group from its first moment, and nothing else; its CPU time is the group's, and nothing stays.
func TestGroup(t *testing.T) {
	for _, processes := range []bool{false, true} {
		t.Run(fmt.Sprintf("PID namespace %t", processes), func(t *testing.T) {
			b, req := groupedBackend(t, groupSite(t), processes)
			l := lease(t, b)
			c, err := l.Bind(agenttest.Context(t), req)
			if err != nil {
				t.Fatal(err)
			}
			if own, wrapper := groupOf(t, os.Getpid()), groupOf(t, c.Client().Hello().PID); !processes && own != wrapper {
				t.Errorf("the wrapper is in %s, and this process in %s", wrapper, own)
			}
			s := agenttest.Spec(t, "tree")
			if _, err := c.Client().Start(agenttest.Context(t), s); err != nil {
				t.Fatal(err)
			}
			agenttest.WaitTree(t, s)
			usage, err := c.Client().Usage(agenttest.Context(t))
			if err != nil || usage.Cgroup == nil || usage.Cgroup.UserCPU+usage.Cgroup.SystemCPU <= 0 {
				t.Errorf("%+v, %v", usage.Cgroup, err)
			}
			site := groupSite(t)
			place, err := group.Find(site)
			if err != nil {
				t.Fatal(err)
			}
			defer place.Close()
			slice := filepath.Join(place.Path(), "slot1@host.slice")
			text, err := os.ReadFile(filepath.Join(slice, "slot1@host.scope", "cgroup.procs"))
			if err != nil || len(strings.Fields(string(text))) < agenttest.Leaves+1 {
				t.Errorf("%q, %v; %d processes are the payload's", text, err, agenttest.Leaves+1)
			}
			if err := l.Release(agenttest.Context(t)); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(slice); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the group stays: %v", err)
			}
		})
	}
}

// TestGroupOfKilledWrapper: if somebody kills the wrapper, what is left in the group ends with the lease.
func TestGroupOfKilledWrapper(t *testing.T) {
	b, req := groupedBackend(t, groupSite(t), false)
	l := lease(t, b)
	c, err := l.Bind(agenttest.Context(t), req)
	if err != nil {
		t.Fatal(err)
	}
	s := agenttest.Spec(t, "tree")
	if _, err := c.Client().Start(agenttest.Context(t), s); err != nil {
		t.Fatal(err)
	}
	pids := leaves(t, s)
	if err := unix.Kill(c.Client().Hello().PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-c.Lost()
	_ = l.Release(agenttest.Context(t))
	checkDead(t, pids)
}

// TestWithoutGroups: where no group can be made, the payload runs, and -check says so.
func TestWithoutGroups(t *testing.T) {
	b, req := groupedBackend(t, group.Site{Base: "htcondor", Top: t.TempDir()}, false)
	c, err := lease(t, b).Bind(agenttest.Context(t), req)
	if err != nil {
		t.Fatal(err)
	}
	s := agenttest.Spec(t, "facts")
	if _, err := c.Client().Start(agenttest.Context(t), s); err != nil {
		t.Fatal(err)
	}
	if exit, err := c.Client().Wait(agenttest.Context(t)); err != nil || exit.WaitStatus != 0 || exit.Cgroup != nil {
		t.Errorf("%+v, %v", exit, err)
	}
	for _, f := range b.Audit(agenttest.Context(t)) {
		if f.What == "control groups" && f.Grade == payload.Warn {
			return
		}
	}
	t.Error("-check says nothing")
}
