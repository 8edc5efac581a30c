package backendtest

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"podstarter/payload"
	"podstarter/payload/procfamily"
	"podstarter/wrapper/agent/agenttest"
)

type user struct{ uid, gid int }

func owner(l payload.Lease) user {
	uid, gid := l.Owner()
	return user{uid, gid}
}

func uid() int { return os.Geteuid() }
func gid() int { return os.Getegid() }

// bound binds a lease to an image.
func bound(t *testing.T, l payload.Lease, image string) payload.Container {
	t.Helper()
	c, err := l.Bind(agenttest.Context(t), request(image))
	if err != nil {
		t.Fatalf("bind %q: %v", image, err)
	}
	return c
}

func request(image string) payload.BindRequest {
	return payload.BindRequest{Activation: "job", Image: image, Owner: "ann"}
}

// job is a running payload.
type job struct {
	t    *testing.T
	c    payload.Container
	spec payload.Spec
}

// start starts the test payload with its lease's user.
func start(t *testing.T, l payload.Lease, c payload.Container, args ...string) *job {
	t.Helper()
	s := agenttest.Spec(t, args...)
	s.UID, s.GID = l.Owner()
	if err := os.Lchown(s.Dir, s.UID, s.GID); err != nil { //nolint:forbidigo // made by this test a moment ago
		t.Fatal(err)
	}
	started, err := c.Client().Start(agenttest.Context(t), s)
	if err != nil {
		t.Fatalf("start %q: %v", args, err)
	}
	if started.PID <= 0 {
		t.Errorf("started as process %d", started.PID)
	}
	j := &job{t, c, s}
	switch args[0] {
	case "tree":
		agenttest.WaitTree(t, s)
	case "sleep":
		agenttest.WaitOutput(t, s, func(out string) bool { return strings.Contains(out, "ready") })
	}
	return j
}

// wait waits for the end of the main process.
func (j *job) wait() payload.Exit {
	j.t.Helper()
	exit, err := j.c.Client().Wait(agenttest.Context(j.t))
	if err != nil {
		j.t.Fatalf("wait: %v", err)
	}
	return exit
}

// goesOn checks that the main process is alive.
func (j *job) goesOn() {
	j.t.Helper()
	if err := j.c.Client().Signal(agenttest.Context(j.t), syscall.SIGCONT, false); err != nil {
		j.t.Errorf("the job has ended: %v", err)
	}
}

func (j *job) sweep() {
	j.t.Helper()
	if err := j.c.Client().Sweep(agenttest.Context(j.t)); err != nil {
		j.t.Errorf("sweep: %v", err)
	}
}

// facts is what a "facts" payload reported about itself.
func (j *job) facts() (f agenttest.Facts) {
	j.t.Helper()
	if err := json.Unmarshal([]byte(agenttest.Output(j.t, j.spec)), &f); err != nil {
		j.t.Fatal(err)
	}
	return f
}

// alive lists the leaves of a tree that are alive.
func (j *job) alive() []int {
	j.t.Helper()
	var alive []int
	leaves := 0
	for line := range strings.Lines(agenttest.Output(j.t, j.spec)) {
		var pid int
		if _, err := fmt.Sscanf(line, "leaf %d", &pid); err != nil {
			continue
		}
		leaves++
		if p, err := procfamily.Lookup("/proc", pid); err == nil && !p.Dead() {
			alive = append(alive, pid)
		}
	}
	if leaves != agenttest.Leaves {
		j.t.Errorf("%d leaves", leaves)
	}
	return alive
}
