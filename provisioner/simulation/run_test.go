package simulation

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"podstarter/provisioner/decision"
)

var podstarter = Ours{Label: "ours", Policy: decision.DefaultPolicy, Idle: decision.DefaultIdle}

// world is a site with one node and a template with one shape of a CPU.
func world(length time.Duration) World {
	w := World{Length: length, Lifetime: day}
	w.addSite("main", 1, 0)
	w.Templates[0].Shapes = w.Templates[0].Shapes[:1]
	return w
}

// batchOf is a scenario with a number of equal jobs at the beginning.
func batchOf(jobs int, run time.Duration, w World, templates ...string) Scenario {
	s := Scenario{Name: "batch", World: w, Seed: 1}
	class := s.Queue.class("one", amount(1, 2, 0), templates...)
	for range jobs {
		s.Queue.Jobs = append(s.Queue.Jobs, Job{Run: run, Class: class, User: "ann"})
	}
	return s
}

// The figures of a run that can be computed by hand.
func TestOneJob(t *testing.T) {
	for _, rule := range []Rule{podstarter, OriginalDefault} {
		r := Run(batchOf(1, time.Hour, world(6*time.Hour), "plain"), rule)
		f := r.Figures
		if f.Finished != 1 || f.Submitted != 1 || f.Made != 1 || len(r.Violations) > 0 {
			t.Errorf("%s: %+v, %q", rule.Name(), f, r.Violations)
		}
		// A start of one to three minutes and the wait for the negotiator, or one that
		// takes up to 16 minutes.
		if f.Wait < time.Minute || f.Wait > 17*time.Minute {
			t.Errorf("%s: the job waited %s", rule.Name(), f.Wait)
		}
		idle := rule.idle().Hours()
		if used := f.CPUHours - f.Waste; used < 0.999 || used > 1.001 {
			t.Errorf("%s: a job of an hour used %.3f CPU-hours", rule.Name(), used)
		}
		if f.Waste < idle || f.Waste > idle+0.3 || f.PodHours != f.CPUHours {
			t.Errorf("%s: %+v; the pod was idle for %.2f hours at its end", rule.Name(), f, idle)
		}
		if parts := f.Starting + f.Empty + f.Beside; parts < f.Waste-0.05 || parts > f.Waste+0.05 {
			t.Errorf("%s: the parts of waste are %.2f, it is %.2f", rule.Name(), parts, f.Waste)
		}
	}
}

// Jobs that match nothing get pods of the original, and none of ours.
func TestNothingMatches(t *testing.T) {
	s := batchOf(40, time.Hour, world(6*time.Hour))
	if f := Run(s, podstarter).Figures; f.Made != 0 || f.Finished != 0 {
		t.Errorf("ours: %+v", f)
	}
	if f := Run(s, OriginalDefault).Figures; f.Made < 11 || f.ForNothing != f.Made || f.Finished != 0 {
		t.Errorf("original: %+v", f)
	}
}

// A node of 32 CPUs runs 32 such pods; the others wait, and all jobs are served.
func TestNodesAreNotOvercommitted(t *testing.T) {
	r := Run(batchOf(100, 2*time.Hour, world(12*time.Hour), "plain"), podstarter)
	most := 0
	for _, s := range r.Samples {
		most = max(most, s.PodCPUs)
	}
	if most != 32 || r.Figures.Finished != 100 || len(r.Violations) > 0 {
		t.Errorf("at most %d CPUs in use, %d jobs done, %q", most, r.Figures.Finished, r.Violations)
	}
}

// Jobs that can run and do not are noticed.
func TestUnservedJobsAreNoticed(t *testing.T) {
	w := world(time.Hour)
	w.Sites[0].Full = []Window{{0, 10 * day}}
	r := Run(batchOf(2, time.Hour, w, "plain"), podstarter)
	if len(r.Violations) != 1 || !strings.Contains(r.Violations[0], "2 jobs that match something were not served") {
		t.Errorf("%q", r.Violations)
	}
}

// A site whose pods fail costs a handful an hour, whether they end or stay silent.
func TestBrokenSite(t *testing.T) {
	for name, set := range map[string]func(*Site, []Window){
		"failing": func(s *Site, w []Window) { s.Failing = w },
		"silent":  func(s *Site, w []Window) { s.Silent = w },
	} {
		w := world(12 * time.Hour)
		set(&w.Sites[0], []Window{{0, 12 * time.Hour}})
		r := Run(batchOf(50, time.Hour, w, "plain"), podstarter)
		if r.Figures.Failed < 5 || r.Figures.Failed > 12*5 || len(r.Violations) > 0 {
			t.Errorf("%s: %d pods failed in 12 hours, %q", name, r.Figures.Failed, r.Violations)
		}
	}
}

// Jobs of pods that are removed run again, until all are done.
func TestPreemption(t *testing.T) {
	w := world(12 * time.Hour)
	w.Sites[0].Preempted = 4 * time.Hour
	r := Run(batchOf(60, time.Hour, w, "plain"), podstarter)
	if f := r.Figures; f.Finished != 60 || f.CPUHours-f.Waste < 61 || f.Made < 40 || len(r.Violations) > 0 {
		t.Errorf("%+v, %q", f, r.Violations)
	}
}

// The same seed gives the same result, and another one does not.
func TestSeedsDecide(t *testing.T) {
	run := func(seed uint64) Result {
		s, ok := Named(Scenarios(seed, day/2), "three shapes")
		if !ok {
			t.Fatal("there is no such scenario")
		}
		return Run(s, podstarter)
	}
	first := run(7)
	if diff := cmp.Diff(first, run(7)); diff != "" {
		t.Errorf("-first +second\n%s", diff)
	}
	if first.Figures == run(8).Figures {
		t.Error("two seeds give the same figures")
	}
}

// How many pods the original wants (event_loop.py:_provision_cluster).
func TestOriginalWants(t *testing.T) {
	for _, c := range []struct{ idle, total, limit, want int }{
		{0, 0, 20, 0},
		{1, 0, 20, 1},
		{3, 0, 20, 1},
		{4, 0, 20, 2},
		{76, 0, 1000, 20},
		{96, 0, 1000, 21},
		{4000, 0, 1000, 265},
		{4000, 0, 20, 20},
		{4000, 999, 20, 20},
		{4000, 1000, 20, 0},
	} {
		o := &original{maxPods: c.limit}
		if got := o.want(c.idle, c.total); got != c.want {
			t.Errorf("%d idle jobs, %d pods, limit %d: %d are wanted, want %d", c.idle, c.total, c.limit, got, c.want)
		}
	}
}

// While a user's access point does not answer, the user's jobs are not seen, and the
// pods that were made for them stay.
func TestOutage(t *testing.T) {
	w := world(4 * time.Hour)
	w.Sites[0].Full = []Window{{0, 3 * time.Hour}}
	w.Outages = []Outage{{Window: Window{10 * time.Minute, 2 * time.Hour}, Users: []string{"ann"}}}
	r := Run(batchOf(5, 10*time.Minute, w, "plain"), podstarter)
	if r.Figures.Wait < 3*time.Hour || r.Figures.Finished != 5 || r.Figures.Withdrawn != 0 {
		t.Errorf("%+v", r.Figures)
	}
}

// spy looks at each round of a rule.
type spy struct {
	Ours
	look func(*run)
}

func (s spy) begin(r *run) decider { return spying{s.Ours.begin(r), func() { s.look(r) }} }

type spying struct {
	decider
	look func()
}

func (s spying) round() {
	s.look()
	s.decider.round()
}

// The negotiator gives two users equal parts, whoever submitted first.
func TestShares(t *testing.T) {
	s := batchOf(100, 2*time.Hour, world(3*time.Hour), "plain")
	for i := range s.Queue.Jobs[50:] {
		s.Queue.Jobs[50+i].User = "ben"
	}
	var running []float64
	Run(s, spy{podstarter, func(r *run) {
		if r.now == time.Hour {
			running = []float64{r.pool.users[0].running, r.pool.users[1].running}
		}
	}})
	if diff := cmp.Diff([]float64{16, 16}, running); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
