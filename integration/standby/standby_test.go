//go:build pool

package standby

import (
	"os"
	"syscall"
	"testing"
	"time"

	"podstarter/integration/pool/controlplane"
)

func TestMain(m *testing.M) {
	controlplane.Exec()
	m.Run()
}

// ordered returns the leader and the one that stands by.
func (w *world) ordered(a, b *provisioner) (leader, other *provisioner) {
	w.t.Helper()
	w.await("one of two leads", func() bool { return a.leads() || b.leads() })
	if b.leads() {
		a, b = b, a
	}
	w.await("the other one knows it", func() bool { return len(b.role()) > len("ok: standby; leader is ") && !b.leads() })
	return a, b
}

// TestStandby: one of two makes pods. If it ends, or is killed, or hangs while it makes them, the other one takes its
// place, makes what is missing and nothing twice.
func TestStandby(t *testing.T) {
	w := newWorld(t, 60)
	for _, name := range []string{"a", "b", "c"} {
		w.account(name)
	}
	leader, other := w.ordered(w.start("a"), w.start("b"))
	w.await("all pods are made", func() bool { return w.pods() >= w.wanted() })

	t.Log("the leader is told to end")
	begin := time.Now()
	if took := leader.end(); took > 3*time.Second {
		t.Errorf("the leader ends after %s", took)
	}
	w.await("the other one leads", other.leads)
	if took := time.Since(begin); took > duration {
		t.Errorf("the other one leads after %s: the Lease was not given back", took)
	}

	t.Log("the leader is killed while pods are missing")
	leader, other = other, w.start("c")
	w.removePods()
	leader.signal(syscall.SIGKILL)
	w.await("the other one leads", other.leads)
	w.await("all pods are made again", func() bool { return w.pods() >= w.wanted() })

	t.Log("the leader hangs while it makes pods")
	leader, other = other, w.start("a")
	w.removePods()
	w.await("the leader has begun to make pods", func() bool { return w.pods() > 5 })
	leader.signal(syscall.SIGSTOP)
	if n := w.pods(); n >= w.wanted() {
		t.Fatalf("all %d pods were made before it could be stopped", n)
	}
	w.await("the other one leads", other.leads)
	w.await("all pods are made again", func() bool { return w.pods() >= w.wanted() })
	leader.signal(syscall.SIGCONT)
	w.await("the one that hung knows that it leads no longer", func() bool { return len(leader.role()) > len("ok: standby; leader is ") && !leader.leads() })

	t.Log("the API server hangs")
	apiServer, err := os.FindProcess(w.plane.PID(controlplane.APIServer))
	if err != nil {
		t.Fatal(err)
	}
	if err := apiServer.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	w.await("nobody leads", func() bool { return !leader.leads() && !other.leads() })
	if err := apiServer.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	leader, _ = w.ordered(leader, other)
	w.removePods()
	w.await("all pods are made again", func() bool { return w.pods() >= w.wanted() })
	if n := w.pods(); n != w.wanted() {
		t.Errorf("there are %d pods, want %d", n, w.wanted())
	}
	if took := leader.end(); took > 3*time.Second {
		t.Errorf("the leader ends after %s", took)
	}
	w.check()
}
