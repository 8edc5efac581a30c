package decision

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"podstarter/provisioner/resources"
)

// random makes an input of a few of everything, with limits that are sometimes
// reached.
func random(r *rand.Rand) Input {
	in := Input{Now: start, Policy: policy, Users: map[string]User{}}
	in.Policy.Patience = time.Duration(r.IntN(20)) * time.Minute
	if r.IntN(2) == 0 {
		in.Policy.Ramp = Ramp{First: r.IntN(5), Part: r.Float64()}
	}
	in.Limits = Limits{Pods: r.IntN(40), Coming: r.IntN(20), PerUser: r.IntN(15), PerRound: r.IntN(15)}
	amount := func(most int) resources.Amount {
		return resources.Amount{CPUs: int64(1 + r.IntN(most)), Memory: int64(r.IntN(most * 2048)), GPUs: int64(r.IntN(2))}
	}
	for t := range 1 + r.IntN(3) {
		in.Templates = append(in.Templates, Template{
			Name: fmt.Sprint("t", t), MaxPods: r.IntN(20), MaxComing: r.IntN(10), Allowance: r.IntN(30), AllowanceWhy: "it waits",
		})
		for s := range 1 + r.IntN(3) {
			in.Shapes = append(in.Shapes, Shape{Template: t, Name: fmt.Sprint("s", s), Size: amount(8), MaxPods: r.IntN(10), Lifetime: time.Duration(r.IntN(3)) * time.Hour})
		}
	}
	for g := range r.IntN(8) {
		group := Group{ID: fmt.Sprint(g), Runtime: time.Duration(r.IntN(40)) * time.Minute}
		for u := range 1 + r.IntN(3) {
			user := fmt.Sprint("u", u)
			group.Submitters = append(group.Submitters, Submitter{User: user, Idle: r.IntN(40)})
			in.Users[user] = User{Priority: r.Float64() * 1000, Usage: float64(r.IntN(50)), Pods: r.IntN(5)}
		}
		request := amount(4)
		var fits []Fit
		for s := range in.Shapes {
			if r.IntN(2) == 0 {
				fits = append(fits, Fit{Shape: s, Request: request, Rank: float64(r.IntN(2))})
			}
		}
		in.Groups, in.Fits = append(in.Groups, group), append(in.Fits, fits)
	}
	for p := range r.IntN(30) {
		shape := r.IntN(len(in.Shapes)+1) - 1
		pod := Pod{ID: fmt.Sprint("p", p), Shape: shape, Phase: Phase(r.IntN(4)), Stuck: r.IntN(4) == 0, Placed: r.IntN(2) == 0, Created: start.Add(-time.Duration(r.IntN(30)) * time.Minute)}
		if shape >= 0 {
			pod.Free = in.Shapes[shape].Size
			if pod.Phase == Reported && r.IntN(2) == 0 {
				pod.Claims = []Claim{{Amount: pod.Free, Until: start.Add(time.Duration(r.IntN(60)-10) * time.Minute)}}
				pod.Free = resources.Amount{}
			}
		}
		in.Pods = append(in.Pods, pod)
	}
	return in
}

// within fails if a number of pods that grew is over its limit. Pods that were
// there before may be more than a limit that was lowered.
func within(t *testing.T, what string, before, after, limit int) {
	t.Helper()
	if after > before && limit > 0 && after > limit {
		t.Errorf("%s: %d pods became %d, the limit is %d", what, before, after, limit)
	}
}

// checkLimits compares what is there after the decision with every limit.
func checkLimits(t *testing.T, in Input, out Output) {
	t.Helper()
	count := func(match func(shape int, unready bool) bool, created bool) int {
		n := 0
		for _, p := range in.Pods {
			if match(p.Shape, p.Phase < Reported) {
				n++
			}
		}
		for _, c := range out.Create {
			if created && match(c.Shape, true) {
				n += c.Count
			}
		}
		return n
	}
	check := func(what string, limit int, match func(shape int, unready bool) bool) {
		within(t, what, count(match, false), count(match, true), limit)
	}
	check("all", in.Limits.Pods, func(int, bool) bool { return true })
	check("coming", in.Limits.Coming, func(_ int, unready bool) bool { return unready })
	for i, s := range in.Shapes {
		check("shape "+in.key(i), s.MaxPods, func(shape int, _ bool) bool { return shape == i })
	}
	for i, tpl := range in.Templates {
		of := func(shape int) bool { return shape >= 0 && in.Shapes[shape].Template == i }
		check(tpl.Name, tpl.MaxPods, func(shape int, _ bool) bool { return of(shape) })
		check(tpl.Name+" coming", tpl.MaxComing, func(shape int, unready bool) bool { return of(shape) && unready })
		// Pods that are stuck do not count: back-off knows of them.
		stuck := 0
		for _, p := range in.Pods {
			if of(p.Shape) && p.Phase < Reported && p.Stuck {
				stuck++
			}
		}
		before := count(func(shape int, unready bool) bool { return of(shape) && unready }, false) - stuck
		after := count(func(shape int, unready bool) bool { return of(shape) && unready }, true) - stuck
		if after > before && after > tpl.Allowance {
			t.Errorf("%s: %d pods are on their way, and %d may be", tpl.Name, after, tpl.Allowance)
		}
	}
	made, users := 0, map[string]int{}
	for _, c := range out.Create {
		made += c.Count
		users[c.User] += c.Count
		if !fits(in, c) {
			t.Errorf("pods of a shape are made for group %d, whose jobs do not match it", c.Group)
		}
	}
	within(t, "one decision", 0, made, in.Limits.PerRound)
	for u, n := range users {
		within(t, u, in.Users[u].Pods, in.Users[u].Pods+n, in.Limits.PerUser)
	}
}

func fits(in Input, c Creation) bool {
	for _, f := range in.Fits[c.Group] {
		if f.Shape == c.Shape && in.Shapes[c.Shape].Size.Fits(f.Request) {
			return true
		}
	}
	return false
}

// checkOutcomes verifies that each job is accounted for once, and that pods are
// made only for jobs.
func checkOutcomes(t *testing.T, in Input, out Output) {
	t.Helper()
	placed, made := 0, 0
	for g, o := range out.Groups {
		sum := o.Free + o.Soon + o.Coming + o.New
		for _, w := range o.Waiting {
			sum += w.Jobs
			if w.Why == "" || w.Jobs <= 0 {
				t.Errorf("group %d: %d jobs wait for the reason %q", g, w.Jobs, w.Why)
			}
		}
		if sum != o.Idle || o.Idle != in.Groups[g].Idle() {
			t.Errorf("group %d: %+v adds up to %d of %d", g, o, sum, in.Groups[g].Idle())
		}
		if len(in.Fits[g]) == 0 && sum != 0 && len(o.Waiting) == 0 {
			t.Errorf("group %d matches nothing, and nobody is told", g)
		}
		placed += o.New
	}
	for _, c := range out.Create {
		made += c.Count
	}
	if made > placed {
		t.Errorf("%d pods are made for %d jobs", made, placed)
	}
	for _, w := range out.Withdraw {
		if p := in.Pods[w.Pod]; p.Phase != Pending || in.Partial {
			t.Errorf("a pod in phase %d is withdrawn", p.Phase)
		}
	}
}

func FuzzDecide(f *testing.F) {
	for seed := range uint64(50) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		in := random(rand.New(rand.NewPCG(seed, 1)))
		out := Decide(in)
		checkLimits(t, in, out)
		checkOutcomes(t, in, out)
	})
}

// FuzzDecisionsInTurn lets many decisions follow each other while pods come and
// the demand changes. No pod is withdrawn sooner than the stated time after it
// was made, and no shape made again sooner than that after one was withdrawn.
func FuzzDecisionsInTurn(f *testing.F) {
	for seed := range uint64(30) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 2))
		in := random(r)
		withdrawn := map[int]time.Time{}
		for round := range 40 {
			in.Now = start.Add(time.Duration(round) * time.Minute)
			for g := range in.Groups {
				for s := range in.Groups[g].Submitters {
					in.Groups[g].Submitters[s].Idle = r.IntN(10) * r.IntN(3)
				}
			}
			out := Decide(in)
			checkLimits(t, in, out)
			checkOutcomes(t, in, out)
			in.Memory = out.Memory
			gone := map[int]bool{}
			for _, w := range out.Withdraw {
				pod := in.Pods[w.Pod]
				if age := in.Now.Sub(pod.Created); age < in.Policy.Settle {
					t.Errorf("a pod is withdrawn %s after it was made", age)
				}
				gone[w.Pod] = true
				if pod.Shape >= 0 {
					withdrawn[pod.Shape] = in.Now
				}
			}
			var left []Pod
			for i, p := range in.Pods {
				if !gone[i] {
					if p.Phase < Ending && r.IntN(6) == 0 {
						p.Phase++
					}
					left = append(left, p)
				}
			}
			for _, c := range out.Create {
				if at, ok := withdrawn[c.Shape]; ok && in.Now.Sub(at) < in.Policy.Settle {
					t.Errorf("a pod of shape %d is made %s after one was withdrawn", c.Shape, in.Now.Sub(at))
				}
				for i := range c.Count {
					left = append(left, Pod{ID: fmt.Sprintf("%d-%d-%s-%d-%d", round, c.Shape, c.User, c.Group, i), Shape: c.Shape, Created: in.Now, Free: in.Shapes[c.Shape].Size})
				}
			}
			in.Pods = left
		}
	})
}

// FuzzEverybodyIsServed runs groups whose jobs match something, with limits that
// leave room for one pod at least, until all are done. Nobody waits for ever.
func FuzzEverybodyIsServed(f *testing.F) {
	for seed := range uint64(30) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 3))
		in := random(r)
		in.Pods, in.Limits = nil, Limits{Pods: 1 + r.IntN(5), PerRound: 1 + r.IntN(3)}
		for i := range in.Templates {
			in.Templates[i].MaxPods, in.Templates[i].MaxComing, in.Templates[i].Allowance = 1+r.IntN(3), 1, 1+r.IntN(3)
		}
		left := 0
		for g := range in.Groups {
			matchable := false
			for _, fit := range in.Fits[g] {
				matchable = matchable || in.Shapes[fit.Shape].Size.Fits(fit.Request)
			}
			for s := range in.Groups[g].Submitters {
				u := &in.Groups[g].Submitters[s]
				if !matchable {
					u.Idle = 0
				}
				u.Idle = min(u.Idle, 10)
				left += u.Idle
			}
		}
		// Each pod serves one job of the user and the group that it was made for, and ends.
		for round := 0; left > 0; round++ {
			if round > 2000 {
				t.Fatalf("%d jobs still wait after %d decisions", left, round)
			}
			in.Now = start.Add(time.Duration(round) * time.Minute)
			out := Decide(in)
			in.Memory = out.Memory
			for _, c := range out.Create {
				for s := range in.Groups[c.Group].Submitters {
					if u := &in.Groups[c.Group].Submitters[s]; u.User == c.User && u.Idle > 0 {
						served := min(u.Idle, c.Count)
						u.Idle -= served
						left -= served
						usage := in.Users[u.User]
						usage.Usage += float64(served)
						in.Users[u.User] = usage
					}
				}
			}
		}
	})
}

// BenchmarkDecide is the decision on 100,000 idle jobs in 500 groups, 5,000 pods
// and 20 templates of five shapes each.
func BenchmarkDecide(b *testing.B) {
	in := huge()
	b.ReportAllocs()
	for b.Loop() {
		Decide(in)
	}
}

func huge() Input {
	r := rand.New(rand.NewPCG(7, 7))
	in := Input{Now: start, Policy: policy, Users: map[string]User{}, Limits: Limits{Pods: 20000}}
	for t := range 20 {
		in.Templates = append(in.Templates, Template{Name: fmt.Sprint("t", t), Allowance: 1 << 30})
		for s := range 5 {
			cpus := int64(1) << s
			in.Shapes = append(in.Shapes, Shape{Template: t, Name: fmt.Sprint("s", s), Size: resources.Amount{CPUs: cpus, Memory: cpus * 4096, Disk: cpus << 22}})
		}
	}
	for g := range 500 {
		group := Group{ID: fmt.Sprint(g), Runtime: time.Duration(1+r.IntN(300)) * time.Minute}
		for range 4 {
			group.Submitters = append(group.Submitters, Submitter{User: fmt.Sprint("u", r.IntN(100)), Idle: 50})
		}
		request := resources.Amount{CPUs: int64(1 + r.IntN(8)), Memory: int64(1024 * (1 + r.IntN(16)))}
		var fits []Fit
		for s, shape := range in.Shapes {
			if shape.Size.Fits(request) && r.IntN(2) == 0 {
				fits = append(fits, Fit{Shape: s, Request: request})
			}
		}
		in.Groups, in.Fits = append(in.Groups, group), append(in.Fits, fits)
	}
	for p := range 5000 {
		shape := r.IntN(len(in.Shapes))
		pod := Pod{ID: fmt.Sprint("p", p), Shape: shape, Phase: Phase(r.IntN(3)), Created: start, Free: in.Shapes[shape].Size}
		if pod.Phase == Reported {
			pod.Free = resources.Amount{}
			for range in.Shapes[shape].Size.CPUs {
				pod.Claims = append(pod.Claims, Claim{Amount: resources.Amount{CPUs: 1, Memory: 4096, Disk: 1 << 22}, Until: start.Add(time.Duration(r.IntN(120)) * time.Minute)})
			}
		}
		in.Pods = append(in.Pods, pod)
	}
	return in
}
