//go:build pool

package daemonfaults

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"podstarter/integration/harness"
)

// shortLease is the lease of a job that does not outlast the cut, in seconds.
const shortLease = "8"

// sharing are the commands of a job whose files are not transferred: a shadow of
// 25.14 that has come back accepts none itself any more.
const sharing = `executable = /bin/sh
transfer_executable = False
arguments = "-c 'trap ''exit 7'' TERM; printf ` + readyName + ` >/proc/$$/comm; while :; do sleep 1 & wait; done' $(Cluster).$(Process)"
should_transfer_files = NO
remote_initialdir = /tmp
MY.FileSystemDomain = TARGET.FileSystemDomain
output = /dev/null
error = /dev/null`

// TestNetworkCut cuts both execution points off from the submit side: connections
// break, and new ones get no answer. The cut lasts longer than the lease of one
// job, which is killed and runs again. Of those with the usual lease one continues
// and one ends during the cut; both have their exit reported afterwards.
func TestNetworkCut(t *testing.T) {
	defer witness(t)()
	type three struct{ stays, ends, short harness.Job }
	jobs := map[harness.Side]three{}
	for _, side := range sides {
		jobs[side] = three{
			submit(t, side, "stays", "", sharing), submit(t, side, "ends", "", sharing),
			submit(t, side, "short", "", sharing, "+JobLeaseDuration = "+shortLease),
		}
	}
	for _, j := range jobs {
		running(t, j.stays)
		running(t, j.ends)
		running(t, j.short)
	}
	cut := map[harness.Side]harness.Process{}
	for _, side := range sides {
		port, err := pool.Port(side)
		if err != nil {
			t.Fatal(err)
		}
		// Whoever calls an execution point calls this address, which passes it on.
		cut[side] = daemon(t, side, "condor_shared_port")
		kill(t, cut[side], unix.SIGSTOP)
		t.Cleanup(func() { _ = harness.Kill(cut[side], unix.SIGCONT) })
		n, err := harness.BreakConnections(os.Getpid(), func(c harness.Connection) bool { return c.RemotePort == port })
		if err != nil || n < 3 {
			t.Fatalf("%d connections to the %s side broken: %v", n, side, err)
		}
	}
	for _, j := range jobs {
		event(t, j.ends, harness.EventDisconnected, 1)
		finish(t, j.ends)
		if err := harness.WaitNone(soon(t), of(j.short)); err != nil {
			t.Fatalf("the job goes on without a lease: %v", err)
		}
	}
	for _, side := range sides {
		kill(t, cut[side], unix.SIGCONT)
	}
	both(t, func(t *testing.T, side harness.Side) {
		j := jobs[side]
		event(t, j.stays, harness.EventReconnected, 1)
		finish(t, j.stays)
		for name, job := range map[string]harness.Job{"stays": j.stays, "ends": j.ends} {
			events := ended(t, job, 7)
			t.Logf("%s: %s", name, numbers(events))
			if count(events, harness.EventExecute) != 1 || count(events, harness.EventReconnected) != 1 {
				t.Errorf("%s: it ran more than once, or its shadow did not come back: %s", name, harness.Headlines(events))
			}
		}
		event(t, j.short, harness.EventExecute, 2)
		finish(t, j.short)
		events := ended(t, j.short, 7)
		t.Logf("short: %s", numbers(events))
		if count(events, harness.EventReconnectFailed) != 1 {
			t.Errorf("short: %s", harness.Headlines(events))
		}
		nothingLeft(t, side)
	})
}
