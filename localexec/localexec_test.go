package localexec_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"podstarter/localexec"
	"podstarter/payload"
	"podstarter/payload/procfamily"
	"podstarter/wrapper/agent/agenttest"
)

func TestMain(m *testing.M) {
	agenttest.Main(m, agenttest.Role{Name: starterName, Run: starter}, agenttest.Role{Name: holderName, Run: holder})
}

func newBackend(t *testing.T, users int) payload.Backend {
	t.Helper()
	uid, _ := agenttest.Payload()
	b, err := localexec.New(localexec.Options{Dir: filepath.Join(agenttest.PublicDir(t), "private"), UID: uid, Users: users})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func lease(t *testing.T, b payload.Backend) payload.Lease {
	t.Helper()
	l, err := b.Lease(agenttest.Context(t), payload.Wish{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Release(agenttest.Context(t)); err != nil {
			t.Error(err)
		}
	})
	return l
}

func bind(t *testing.T, l payload.Lease, activation string) payload.Container {
	t.Helper()
	c, err := l.Bind(agenttest.Context(t), payload.BindRequest{Activation: activation})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestEnvironment: a payload gets no variable of the starter's environment, and its wrapper
// ends with its lease.
func TestEnvironment(t *testing.T) {
	t.Setenv("SECRET_OF_THE_STARTER", "1")
	l := lease(t, newBackend(t, 1))
	c := bind(t, l, "job1")
	s := agenttest.Spec(t, "facts")
	s.ImageEnv = true
	if _, err := c.Client().Start(agenttest.Context(t), s); err != nil {
		t.Fatal(err)
	}
	exit, err := c.Client().Wait(agenttest.Context(t))
	if err != nil || exit.WaitStatus != 0 || exit.Cgroup != nil {
		t.Errorf("%+v, %v", exit, err)
	}
	var facts agenttest.Facts
	if err := json.Unmarshal([]byte(agenttest.Output(t, s)), &facts); err != nil {
		t.Fatal(err)
	}
	if len(facts.Env) > 0 || facts.NoNewPrivs != "1" {
		t.Errorf("%+v", facts)
	}
	if err := l.Release(agenttest.Context(t)); err != nil {
		t.Error(err)
	}
	if processExists(c.Client().Hello().PID) {
		t.Error("the wrapper has outlived its lease")
	}
}

func processExists(pid int) bool {
	_, err := procfamily.Lookup("/proc", pid)
	return err == nil
}

// leaves waits until a "tree" is complete and gives the process IDs of its leaves.
func leaves(t *testing.T, s payload.Spec) []int {
	t.Helper()
	agenttest.WaitTree(t, s)
	return leafPIDs(t, agenttest.Output(t, s))
}

func leafPIDs(t *testing.T, out string) []int {
	t.Helper()
	var pids []int
	for line := range strings.Lines(out) {
		var pid int
		if _, err := fmt.Sscanf(line, "leaf %d", &pid); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

func checkDead(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if p, err := procfamily.Lookup("/proc", pid); err == nil && !p.Dead() {
			t.Errorf("process %d is left", pid)
		}
	}
}

func TestWrapperCannotStart(t *testing.T) {
	uid, _ := agenttest.Payload()
	for _, program := range []string{"/nonexistent", "/bin/false"} {
		b, err := localexec.New(localexec.Options{Dir: filepath.Join(agenttest.PublicDir(t), "private"), UID: uid, Users: 1, Program: program})
		if err != nil {
			t.Fatal(err)
		}
		_, err = lease(t, b).Bind(agenttest.Context(t), payload.BindRequest{Activation: "job"})
		var verdict *payload.Verdict
		if !errors.As(err, &verdict) || verdict.Blame != payload.Site {
			t.Errorf("%s: %v", program, err)
		}
	}
}

// starterName makes the test binary a starter that waits to be killed.
const starterName = "test-starter"

func starter(args []string) int {
	fail := func(err error) int {
		fmt.Println("failed:", err)
		return 1
	}
	var s payload.Spec
	if err := json.Unmarshal([]byte(args[1]), &s); err != nil {
		return fail(err)
	}
	ctx := context.Background()
	b, err := localexec.New(localexec.Options{Dir: args[0], UID: s.UID, Users: 1})
	if err != nil {
		return fail(err)
	}
	l, err := b.Lease(ctx, payload.Wish{})
	if err != nil {
		return fail(err)
	}
	c, err := l.Bind(ctx, payload.BindRequest{Activation: "job", OwnProcesses: len(args) > 2})
	if err != nil {
		return fail(err)
	}
	if _, err := c.Client().Start(ctx, s); err != nil {
		return fail(err)
	}
	fmt.Println(c.Client().SeenPID())
	select {}
}

func TestStarterKilled(t *testing.T) { starterKilled(t) }

func starterKilled(t *testing.T, more ...string) {
	s := agenttest.Spec(t, "tree")
	spec, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(agenttest.PublicDir(t), "private")
	cmd := exec.Command(agenttest.Program(), append([]string{dir, string(spec)}, more...)...)
	cmd.Args[0] = starterName
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	var wrapper int
	if _, scanErr := fmt.Sscan(line, &wrapper); err != nil || scanErr != nil {
		t.Fatalf("%q, %v", line, err)
	}
	pids := leaves(t, s)
	if len(more) > 0 { // these are not the machine's numbers
		pids = membersOf(t, s.UID)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	ctx := agenttest.Context(t)
	for ctx.Err() == nil {
		if p, err := procfamily.Lookup("/proc", wrapper); err != nil || p.Dead() {
			checkDead(t, pids)
			return
		}
	}
	t.Error("the wrapper has outlived its starter")
}
