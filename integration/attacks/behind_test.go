//go:build pool

package attacks

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/integration/harness"
)

// behind kills the starter of a job whose wrapper does not notice, and lets another
// job follow at once in the same container.
func (w *target) behind(t *testing.T, a *attempts) {
	t.Helper()
	starters, wrappers := w.starters(t, nil), w.wrappers(t)
	// A look at processes would come too late: who got in goes with its container.
	cluster, err := pool.Cluster()
	if err != nil {
		t.Fatal(err)
	}
	told, err := net.ListenPacket("udp", net.JoinHostPort(cluster.NodeIP, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close()
	first := w.submitWhere(t, "first", onlyOnce, "covet="+told.LocalAddr().String()+" forever -- first")
	// It says so itself: one that has only just begun would find no sandbox of its own.
	if received(t, told, patience) == "" {
		t.Fatalf("job %s does not say that it waits", first.ID())
	}
	wrapper := w.newWrapper(t, wrappers)
	started := w.starters(t, starters)
	if len(started) != 1 {
		t.Fatalf("starters of job %s: %v", first.ID(), started)
	}
	if err := harness.Stop(soon(t, patience), wrapper); err != nil {
		t.Fatal(err)
	}
	goOn := func() { _ = unix.Kill(wrapper.PID, unix.SIGCONT) } // unless its container is gone
	defer goOn()
	if err := harness.Kill(started[0], unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	next := w.submit(t, "behind", "out=done")
	w.mustEnd(t, next)
	a.got(Behind)
	if path := received(t, told, 100*time.Millisecond); path != "" {
		a.got(Behind, "reads the sandbox of the next job: "+path)
	}
	goOn()
	w.starterGone(t)
}

// received is what has arrived or arrives within a time; "" if nothing does.
func received(t *testing.T, conn net.PacketConn, within time.Duration) string {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 1<<12)
	n, _, err := conn.ReadFrom(text)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	return string(text[:n])
}
