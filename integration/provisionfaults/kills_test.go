//go:build pool

package provisionfaults

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// limit bounds the pods in TestKilled.
const limit = 25

// TestKilled: the provisioner is killed again and again at some moment of a round, while jobs come and go and pods begin. It never makes
// a pod too many, and forgets none.
func TestKilled(t *testing.T) {
	t.Parallel()
	s := newSite(t, "killed", fmt.Sprintf("limits: {pods: %d}", limit), "policy: {settle: 1m}")
	t.Logf("-seed %d", *seed)
	chance := rand.New(rand.NewPCG(*seed, 1))
	first := s.prove()
	running := 1
	length := 500 * time.Millisecond
	idle, made, cut := 0, 0, 0
	for n := range *kills {
		idle = s.change(chance, first, idle, &running)
		// A schedd that is busy may still show what was removed.
		shown := s.shown()
		if shown != idle {
			t.Logf("after %d kills the schedd has %d idle jobs, and should have %d", n, shown, idle)
		}
		before := len(s.phase("Pending"))
		began := time.Now()
		p := s.start(t.Context(), "-once")
		// Now and then a round comes to its end: how long one takes depends on the machine.
		over := time.After(time.Duration(chance.Float64() * 1.1 * float64(length)))
		if n%5 == 0 {
			over = time.After(roundOf)
		}
		select {
		case <-p.done:
			length = (length + time.Since(began)) / 2
		case <-over:
			p.kill()
			cut++
		}
		pending := len(s.phase("Pending"))
		made += pending - before
		if most := max(before, min(max(idle, shown), limit-running)); pending > most {
			t.Fatalf("after %d kills there are %d pending pods for %d idle jobs, and there were %d; at most %d are right", n, pending, idle, before, most)
		}
		if n%10 == 9 {
			s.remembers(pending, idle)
		}
	}
	t.Logf("%d of %d rounds, which take %s, were killed; all made %d pods", cut, *kills, length.Round(time.Millisecond), made)
	if cut < *kills/3 || made < *kills/5 {
		t.Errorf("%d of %d rounds were killed, and %d pods made: that shows little", cut, *kills, made)
	}
	// So that there is something to withdraw.
	condor.submit(t, one, alice, s.name, fmt.Sprintf("queue %d", idle+limit))
	if _, err := s.once(); err != nil {
		t.Fatal(err)
	}
	s.withdrawsAll(running)
}

// shown returns how many idle jobs the schedd has.
func (s *site) shown() int {
	s.t.Helper()
	return len(strings.Fields(condor.must(s.t, "", "", "condor_q", "-allusers", "-name", condor.schedds[one],
		"-constraint", fmt.Sprintf("JobStatus == 1 && ProvisionTest == %q", s.name), "-af", "ClusterId")))
}

// change lets a few jobs come or go, or pods run or end, except the first one, and returns how many jobs are idle.
func (s *site) change(chance *rand.Rand, first string, idle int, running *int) int {
	s.t.Helper()
	switch n := 1 + chance.IntN(4); chance.IntN(6) {
	case 0, 1:
		condor.submit(s.t, one, alice, s.name, fmt.Sprintf("queue %d", n))
		return idle + n
	case 2:
		return s.fewer(idle, n)
	case 3: // pods run, and take their jobs
		pending := s.phase("Pending")
		pending = pending[:min(n, len(pending), idle)]
		if *running+len(pending) > limit/2 || len(pending) == 0 {
			return idle
		}
		s.run(pending...)
		var ads []string
		for _, name := range pending {
			ads = append(ads, slotAd(name, "Claimed"))
		}
		condor.advertise(s.t, ads...)
		*running += len(pending)
		return s.fewer(idle, len(pending))
	case 4: // pods end, whether they run or not
		var gone []pod
		for _, p := range s.pods() {
			if p.Metadata.Name != first && len(gone) < 2*n {
				gone = append(gone, p)
			}
		}
		for _, p := range gone {
			s.api(http.MethodDelete, "/api/v1/namespaces/"+s.namespace()+"/pods/"+p.Metadata.Name+"?gracePeriodSeconds=0", nil, nil)
			if p.Status.Phase == "Running" {
				*running--
			}
		}
	}
	return idle
}

// fewer removes some of the idle jobs: the oldest ones.
func (s *site) fewer(idle, n int) int {
	s.t.Helper()
	if n = min(n, idle); n == 0 {
		return idle
	}
	// What was removed a moment ago may still be in the queue.
	ids := strings.Fields(condor.must(s.t, "", "", "condor_q", "-allusers", "-name", condor.schedds[one],
		"-constraint", fmt.Sprintf("JobStatus == 1 && ProvisionTest == %q", s.name), "-af:j", "JobStatus"))
	ids = slices.DeleteFunc(ids, func(field string) bool { return !strings.Contains(field, ".") })
	if len(ids) != idle {
		s.t.Fatalf("the schedd has %d jobs, and should have %d", len(ids), idle)
	}
	args := []string{"condor_rm", "-name", condor.schedds[one]}
	condor.must(s.t, "", "", append(args, ids[:n]...)...)
	return idle - n
}

// column finds the numbers of the only group that -dry-run prints: idle, free, soon, coming, new, waiting.
var column = regexp.MustCompile(`(?m)^[0-9a-f]{16} +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) `)

// remembers checks that a provisioner which starts anew knows of all pods.
func (s *site) remembers(pending, idle int) {
	s.t.Helper()
	out := s.dryRun()
	m := column.FindStringSubmatch(out)
	if m == nil {
		if idle > 0 {
			s.t.Fatalf("-dry-run knows nothing of %d idle jobs:\n%s", idle, out)
		}
		return
	}
	if coming := strconv.Itoa(min(pending, idle)); m[1] != strconv.Itoa(idle) || m[4] != coming {
		s.t.Fatalf("-dry-run should know of %d idle jobs, and %s pods on their way for them:\n%s", idle, coming, out)
	}
}

// withdrawsAll removes all jobs. The provisioner withdraws the pods that do not run, although it is killed while it does so.
func (s *site) withdrawsAll(running int) {
	s.t.Helper()
	condor.remove(s.t, one, s.name, "true")
	pending := len(s.phase("Pending"))
	if pending == 0 {
		s.t.Fatal("no pod is pending: nothing can be withdrawn")
	}
	fewer := func(most int) func() error {
		return func() error {
			if n := len(s.pods()); n > most {
				return fmt.Errorf("there are %d pods, of which %d run", n, running)
			}
			return nil
		}
	}
	p := s.start(s.t.Context())
	s.await("the first withdrawal", 3*time.Minute, fewer(running+pending-1))
	p.kill()
	s.start(s.t.Context())
	s.await("all withdrawals", 3*time.Minute, fewer(running))
	if left := len(s.phase("Running")); left != running {
		s.t.Errorf("%d pods run, want %d: no pod that runs may be withdrawn", left, running)
	}
}
