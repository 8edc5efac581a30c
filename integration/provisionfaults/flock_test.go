//go:build pool

package provisionfaults

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// flocking is the FlockTo by which jobs flock where FLOCK_BY_DEFAULT is false. The schedd counts jobs that name the pool only if they
// name the default pools as well.
func flocking() string {
	return fmt.Sprintf("+FlockTo = \"127.0.0.1:%d, DEFAULT\"\n", condor.port)
}

// TestFlocking: a schedd of another pool flocks here. Its jobs that may flock get pods, under the names that users have there, and its
// other jobs get none. While it hangs, jobs of this pool get theirs, and pods that its jobs no longer need are withdrawn.
func TestFlocking(t *testing.T) {
	t.Parallel()
	s := newSite(t, "flocks", "flocking: {schedds: 20}", "policy: {settle: 1m}")
	// No schedds are named; the list is for what is removed at the end.
	s.every, s.schedds = true, []string{one, home}
	s.prove()
	condor.submit(t, home, alice, s.name, flocking()+"queue 2")
	condor.submit(t, home, alice, s.name, "queue 3")
	condor.submit(t, home, mallet, s.name, "queue 4")
	condor.submit(t, one, alice, s.name, "queue")
	s.await("what the other pool's schedd asks for", time.Minute, func() error {
		asked := condor.must(t, "", "", "condor_status", "-submitters", "-af", "Name", "ScheddName", "IdleJobs", "SubmitterTag")
		if want := fmt.Sprintf("%s@home.invalid %s 2 127.0.0.1:%d\n", alice, condor.schedds[home], condor.port); !strings.Contains(asked, want) {
			return fmt.Errorf("submitters are %q", asked)
		}
		return nil
	})
	out := s.dryRun()
	for _, want := range []string{
		alice + "@home.invalid", alice + "@pool.invalid",
		fmt.Sprintf("2 of the idle jobs flock here from the schedd %s of the pool %s\n", condor.schedds[home], condor.home),
	} {
		if !strings.Contains(out, want) {
			t.Errorf("-dry-run lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, mallet) {
		t.Errorf("jobs that may not flock are known:\n%s", out)
	}
	for user, want := range map[string]string{
		alice:  "asks for slots for 2 jobs of " + alice + "@home.invalid",
		mallet: "No pod is made for it: the schedd " + condor.schedds[home] + " of the pool " + condor.home + " asks for no slots for " + mallet + "@home.invalid here",
	} {
		job := strings.Fields(condor.must(t, "", "", "condor_q", "-allusers", "-name", condor.schedds[home], "-constraint", fmt.Sprintf("Owner == %q && ProvisionTest == %q", user, s.name), "-af", "ClusterId"))
		if len(job) == 0 {
			t.Fatalf("%s has no jobs", user)
		}
		if said := s.say("-explain", condor.schedds[home]+"#"+job[0]+".0"); !strings.Contains(said, want) {
			t.Errorf("-explain lacks %q:\n%s", want, said)
		}
	}

	p := s.start(t.Context())
	p.await("pods for two jobs that flock and one of this pool", roundOf, func(r record) bool { return r.Idle == 3 && r.Made == 3 })

	// It hangs, and so do others that say that they flock here.
	for i := range 5 {
		condor.silent(t, fmt.Sprintf("silent-%s-%d", s.name, i))
	}
	condor.pause(t, "condor_schedd", home)
	began := time.Now()
	p.await("a round without the other pool's schedd", roundOf, func(r record) bool { return r.Idle == 1 })
	condor.submit(t, one, alice, s.name, "queue 4")
	p.await("places for the jobs of this pool", roundOf, func(r record) bool { return r.Idle == 5 && r.Made > 0 && r.Without == 0 })
	if said := p.errors(); !strings.Contains(said, fmt.Sprintf("the jobs of the schedd %s of the pool %s: ", condor.schedds[home], condor.home)) || strings.Contains(said, "not all idle jobs are known") {
		t.Errorf("of the schedd that hangs it is said: %s", said)
	}
	condor.remove(t, one, s.name, "true")
	// In place of a round that waits for all of them for ever.
	p.await("pods that nobody needs to be withdrawn", roundOf, func(r record) bool { return r.Withdrawn > 0 })
	t.Logf("with schedds that hang, all this took %s", time.Since(began).Round(time.Second))
}

// silent advertises a schedd of another pool that flocks here and does not answer.
func (c *htcondor) silent(t *testing.T, name string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	// The kernel accepts, and nobody reads.
	t.Cleanup(func() { _ = l.Close() })
	common := fmt.Sprintf("MyAddress = \"<%s>\"\nScheddIpAddr = \"<%s>\"\nMachine = \"silent\"\nCondorVersion = \"$CondorVersion: 25.14.0 2026-01-01 $\"\n", l.Addr(), l.Addr())
	c.must(t, "", fmt.Sprintf("MyType = \"Scheduler\"\nName = %q\nCollectorHost = \"nowhere.invalid\"\n%s", name, common), "condor_advertise", "-tcp", "UPDATE_SCHEDD_AD", "-")
	c.must(t, "", fmt.Sprintf("MyType = \"Submitter\"\nName = \"eve@nowhere.invalid\"\nScheddName = %q\nSubmitterTag = \"here\"\nIdleJobs = 1000000000\n%s", name, common), "condor_advertise", "-tcp", "UPDATE_SUBMITTOR_AD", "-")
	t.Cleanup(func() { c.withdraw(t, name) })
}

// withdraw takes back the ads of a schedd and of its submitters.
func (c *htcondor) withdraw(t *testing.T, schedd string) {
	t.Helper()
	for command, ads := range map[string]string{"INVALIDATE_SCHEDD_ADS": "Name", "INVALIDATE_SUBMITTOR_ADS": "ScheddName"} {
		c.must(t, "", fmt.Sprintf("MyType = \"Query\"\nTargetType = \"Any\"\nRequirements = %s == %q\n", ads, schedd), "condor_advertise", "-tcp", command, "-")
	}
}
