//go:build pool

package provisionfaults

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// TestScheddHangs: one of two schedds is stopped. The jobs of the other get pods in the same round, and nothing is withdrawn, since the
// jobs that are not known may need what is there.
func TestScheddHangs(t *testing.T) {
	t.Parallel()
	s := newSite(t, "hangs", "policy: {settle: 1m}")
	s.schedds = []string{one, two}
	condor.submit(t, two, alice, s.name, "queue")
	p := s.start(t.Context())
	p.await("a pod for the second schedd's job", roundOf, func(r record) bool { return r.Made == 1 })
	resume := condor.pause(t, "condor_schedd", two)
	began := time.Now()
	p.await("a round without the second schedd", roundOf, func(r record) bool { return r.Idle == 0 })
	t.Logf("a round with a schedd that hangs takes up to %s", time.Since(began).Round(time.Second))
	if !strings.Contains(p.errors(), "not all idle jobs are known") {
		t.Errorf("nothing is said of the schedd: %s", p.errors())
	}
	// Longer than pods need to be surplus.
	for time.Since(began) < 90*time.Second {
		if got := p.await("a round", roundOf, func(record) bool { return true }); got.Withdrawn != 0 {
			t.Fatalf("%d pods are withdrawn although not all jobs are known", got.Withdrawn)
		}
	}
	condor.submit(t, one, alice, s.name, "queue 2")
	// One of the jobs counts on the pod of which nobody knows for whom it is.
	p.await("a pod for the first schedd's jobs", roundOf, func(r record) bool { return r.Idle == 2 && r.Made == 1 })
	resume()
	p.await("a round with both", roundOf, func(r record) bool { return r.Idle == 3 && r.Made == 1 })
}

// TestCollectorHangs: the collector is stopped. No round knows what is there, so that none makes anything; the next one that does, goes on.
func TestCollectorHangs(t *testing.T) {
	s := newSite(t, "collector")
	condor.submit(t, one, alice, s.name, "queue")
	resume := condor.pause(t, "condor_collector", "")
	p := s.start(t.Context())
	began := time.Now()
	if got := p.await("a round without the collector", roundOf, func(record) bool { return true }); got.Made != 0 {
		t.Errorf("%d pods are made without knowing what is there", got.Made)
	}
	t.Logf("a round without the collector takes %s", time.Since(began).Round(time.Second))
	resume()
	p.await("the pod", roundOf, func(r record) bool { return r.Made == 1 })
}

// TestScheddAnswersHalf: a schedd's answer breaks off in the middle. The jobs of the other get pods, and nothing hangs.
func TestScheddAnswersHalf(t *testing.T) {
	s := newSite(t, "half")
	s.schedds = []string{one, two}
	// Pods of this template are of use to the other schedd's job alone.
	s.template("other", fmt.Sprintf(podManifest, held), oneShape, "Other = true", `START = TARGET.Owner == "`+alice+`"`)
	condor.submit(t, one, alice, s.name, "requirements = TARGET.Other\nqueue")
	condor.submit(t, two, mallet, s.name, "requirements = TARGET.Memory > $(Process)\nqueue 500")
	address := strings.Trim(strings.TrimSpace(condor.must(t, "", "", "condor_status", "-schedd", "-af", "MyAddress", "-constraint", fmt.Sprintf("Name == %q", condor.schedds[two]))), "<>")
	address, _, _ = strings.Cut(address, "?")
	const most = 40_000
	cut := relay(t, address, most)
	const name = "half@pool.invalid"
	common := fmt.Sprintf("Machine = \"half\"\nMyAddress = \"<%s>\"\nScheddIpAddr = \"<%s>\"\nCondorVersion = \"$CondorVersion: 25.14.0 2026-01-01 $\"\n", cut, cut)
	condor.must(t, "", fmt.Sprintf("MyType = \"Scheduler\"\nName = %q\n%s", name, common), "condor_advertise", "-tcp", "UPDATE_SCHEDD_AD", "-")
	condor.must(t, "", fmt.Sprintf("MyType = \"Submitter\"\nName = \"someone@pool.invalid\"\nScheddName = %q\nSubmitterTag = \"\"\nIdleJobs = 1\n%s", name, common),
		"condor_advertise", "-tcp", "UPDATE_SUBMITTOR_AD", "-")
	t.Cleanup(func() {
		condor.withdraw(t, name)
	})
	s.settings = []string{fmt.Sprintf("schedds: [%q, %q]", condor.schedds[one], name)}
	got, err := s.once()
	if n := s.of("other"); n != 1 || err == nil {
		t.Errorf("%d pods are made for the job of the other schedd, with the error %v", n, err)
	}
	if got.Idle < 1 || got.Idle > 400 {
		t.Errorf("%d idle jobs are known, want one and a part of 500", got.Idle)
	}
}

// relay passes what is said to an address on, and of the answers only so many bytes.
func relay(t *testing.T, to string, most int64) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", to)
			if err != nil {
				_ = in.Close()
				continue
			}
			go func() { _, _ = io.Copy(out, in) }()
			go func() {
				_, _ = io.CopyN(in, out, most)
				_ = in.Close()
				_ = out.Close()
			}()
		}
	}()
	return l.Addr().String()
}

// TestHostileJobs: what one user submits to harm costs that user's jobs, and no other's: those get their pods in the same round.
func TestHostileJobs(t *testing.T) {
	t.Parallel()
	for name, commands := range map[string]string{
		"huge":      "requirements = TARGET.A == \"" + strings.Repeat("x", 1<<20) + "\"\nqueue 5",
		"attribute": "+Blob = \"" + strings.Repeat("x", 1<<20) + "\"\nrequirements = size(MY.Blob) > 1\nqueue 5",
		"deep":      "requirements = " + strings.Repeat("(", 100) + "TARGET.Memory > 1" + strings.Repeat(")", 100) + "\nqueue",
		"pattern":   `requirements = regexp("(a+)+$", "` + strings.Repeat("a", 60) + `!")` + "\nqueue",
		"distinct":  "requirements = TARGET.Memory > $(Process)\nqueue 10000",
		"slow":      slow + "\nqueue 800",
		"control":   "requirements = TARGET.Memory > 1 || MY.X == \"\x1b[2J\x07\"\n+X = \"\x1b[2J\"\nqueue",
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, "hostile-"+name)
			s.template("victim", fmt.Sprintf(podManifest, held), oneShape, "Victim = true", `START = TARGET.Owner == "`+alice+`"`)
			condor.submit(t, one, mallet, s.name, commands)
			condor.submit(t, one, alice, s.name, "requirements = TARGET.Victim\nqueue 2")
			began := time.Now()
			got, err := s.once()
			took := time.Since(began)
			t.Logf("a round of %d groups takes %s: %v", got.Groups, took.Round(100*time.Millisecond), err)
			if n := s.of("victim"); n != 2 {
				t.Errorf("the other user's 2 jobs get %d pods", n)
			}
			if took > time.Minute {
				t.Errorf("the round takes %s", took)
			}
		})
	}
}

// slow are Requirements that are different for each job, and each add 8,000 numbers. With many more, the schedd itself hangs.
var slow = func() string {
	lines := "requirements = $(Process) < 0 || MY.Y0 > TARGET.Memory\n"
	for i := range 3 {
		lines += fmt.Sprintf("+Y%d = MY.Y%d%s\n", i, i+1, strings.Repeat(fmt.Sprintf(" + MY.Y%d", i+1), 19))
	}
	return lines + "+Y3 = 1"
}()

// TestLies: ads of slots that lie. Whoever may advertise can make pods count as reported, full or free, and nothing more; the provisioner's
// output has no control characters.
func TestLies(t *testing.T) {
	t.Parallel()
	s := newSite(t, "lies", "limits: {pods: 4}")
	first := s.prove()
	condor.submit(t, one, alice, s.name, "queue 2")
	s.makes(2)
	pending := s.phase("Pending")
	t.Cleanup(func() {
		condor.must(t, "", "MyType = \"Query\"\nTargetType = \"Machine\"\nRequirements = regexp(\"@"+s.name+"-\", Name)\n", "condor_advertise", "-tcp", "INVALIDATE_STARTD_ADS", "-")
	})
	// A pod that does not run has no free slots, whoever says so.
	condor.advertise(t, slotAd(pending[0], "Unclaimed", "Cpus = 1000000", "Memory = 1000000000"), slotAd(pending[1], "Drained"),
		slotAd(s.name+"-plain-nowhere", "Unclaimed", "Cpus = 1000000"), slotAd(s.name+"-plain-\x1b[2J\x07", "Unclaimed"),
		slotAd(s.name+"-plain-huge", "Unclaimed", "Blob = \""+strings.Repeat("x", 1<<20)+"\""), slotAd(s.name+"-"+strings.Repeat("y", 100_000), "Unclaimed"))
	s.makes(0)
	// The pod that runs says that it has room for a thousand jobs: it has room for one.
	condor.advertise(t, slotAd(first, "Unclaimed", "Cpus = 1000000", "Memory = 1000000000", "Disk = 1000000000"))
	condor.submit(t, one, alice, s.name, "queue 2")
	s.makes(1)
	// One that drains takes no job, so that its place is made again: up to the limit.
	condor.advertise(t, slotAd(first, "Drained"))
	s.makes(0)
	if n := len(s.pods()); n != 4 {
		t.Errorf("there are %d pods, and the limit is 4", n)
	}
	if out := s.dryRun(); strings.ContainsAny(out, "\x1b\x07") {
		t.Errorf("the output has control characters: %q", out)
	}
}
