package proctable_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"podstarter/payload"
	"podstarter/payload/proctable"
	"podstarter/wrapper/agent/agenttest"
)

func TestMain(m *testing.M) { agenttest.Main(m) }

// begin makes a table, then starts a payload.
func begin(t *testing.T, s payload.Spec) (*proctable.Table, *payload.Client) {
	t.Helper()
	w := agenttest.StartWrapper(t, nil)
	c := w.Dial(t)
	table, err := proctable.New(proctable.Options{UID: s.UID, GID: s.GID, Wrapper: c.Hello().PID})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(table.Close)
	if _, err := c.Start(agenttest.Context(t), s); err != nil {
		t.Fatal(err)
	}
	return table, c
}

func look(t *testing.T, table *proctable.Table, d proctable.Detail) proctable.Snapshot {
	t.Helper()
	s, err := table.Snapshot(agenttest.Context(t), d)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// lookUntil looks until a condition holds.
func lookUntil(t *testing.T, table *proctable.Table, enough func(proctable.Snapshot) bool) proctable.Snapshot {
	t.Helper()
	ctx := agenttest.Context(t)
	for {
		s := look(t, table, proctable.Detail{})
		if enough(s) {
			return s
		}
		if ctx.Err() != nil {
			t.Fatalf("the condition was never met; last: %+v", s)
		}
	}
}

func TestMemory(t *testing.T) {
	s := agenttest.Spec(t, "hold", "100")
	table, _ := begin(t, s)
	agenttest.WaitOutput(t, s, func(out string) bool { return out != "" })
	plain := look(t, table, proctable.Detail{})
	if len(plain.Processes) != 1 || plain.Threads < 2 || plain.RSS < 100<<20 || plain.ImageSize < plain.RSS || plain.PSS != -1 || plain.ReadBytes != -1 {
		t.Errorf("%+v", plain)
	}
	full := look(t, table, proctable.Detail{PSS: true, IO: true})
	if full.PSS < 100<<20 || full.PSS > full.RSS || full.Processes[0].PSS < 0 || full.ReadBytes < 0 || full.WriteBytes < 0 {
		t.Errorf("%+v", full)
	}
}

func TestCPUOfTheDead(t *testing.T) {
	s := agenttest.Spec(t, "burnchild", "200")
	table, c := begin(t, s)
	const burnt = 350 * time.Millisecond // of 400, minus what ticks cut off
	sum := func(s proctable.Snapshot) time.Duration { return s.UserCPU + s.SystemCPU }
	lookUntil(t, table, func(s proctable.Snapshot) bool { return sum(s) >= burnt })
	if err := c.Sweep(agenttest.Context(t)); err != nil {
		t.Fatal(err)
	}
	after := look(t, table, proctable.Detail{PSS: true, IO: true})
	if len(after.Processes) != 0 || sum(after) < burnt || sum(after) > 10*burnt || after.PSS != 0 {
		t.Errorf("%+v", after)
	}
}

func TestSignals(t *testing.T) {
	s := agenttest.Spec(t, "tree")
	table, _ := begin(t, s)
	ctx := agenttest.Context(t)
	agenttest.WaitTree(t, s)
	if n, err := table.Signal(ctx, syscall.SIGSTOP); err != nil || n < agenttest.Leaves+1 {
		t.Errorf("%d processes, %v", n, err)
	}
	stopped := lookUntil(t, table, func(s proctable.Snapshot) bool {
		for _, p := range s.Processes {
			if p.State != 'T' {
				return false
			}
		}
		return true
	})
	if empty, err := table.Empty(ctx); err != nil || empty {
		t.Errorf("empty: %t, %v", empty, err)
	}
	victim := stopped.Processes[0]
	if err := table.SignalProcess(ctx, victim, syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	lookUntil(t, table, func(s proctable.Snapshot) bool { return len(s.Processes) < len(stopped.Processes) })
	victim.Start++
	victim.PID = os.Getpid()
	if err := table.SignalProcess(ctx, victim, syscall.SIGKILL); err == nil {
		t.Error("a process with a reused ID was signalled")
	}
	if err := table.KillAll(ctx); err != nil {
		t.Error(err)
	}
	if empty, err := table.Empty(ctx); err != nil || !empty {
		t.Errorf("empty: %t, %v", empty, err)
	}
}

func TestForkBomb(t *testing.T) {
	const most = 400
	s := agenttest.Bomb(t, most)
	table, _ := begin(t, s)
	lookUntil(t, table, func(s proctable.Snapshot) bool { return len(s.Processes) > most/2 })
	if err := table.KillAll(agenttest.Context(t)); err != nil {
		t.Error(err)
	}
}

func TestRefusals(t *testing.T) {
	if agenttest.Root() {
		if _, err := proctable.New(proctable.Options{UID: 0}); err == nil {
			t.Error("New accepted root as the payload's user")
		}
		return
	}
	if _, err := proctable.New(proctable.Options{UID: os.Geteuid()}); err == nil {
		t.Error("New worked without root and without a wrapper")
	}
}
