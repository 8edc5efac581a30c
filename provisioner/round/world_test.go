package round

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"podstarter/provisioner/demand"
	"podstarter/provisioner/platform"
	"podstarter/provisioner/resources"
	"podstarter/provisioner/supply"
)

// world is a site whose pods run, report, take jobs and end by themselves, and whose
// sources fail now and then.
type world struct {
	*site
	chance *rand.Rand
	kinds  []kindOfJob
	pods   map[string]*worldPod
	faults bool
}

// kindOfJob is jobs of one group.
type kindOfJob struct {
	text string
	size resources.Amount
	idle int
	on   string // the schedd
}

// worldPod is a pod that runs.
type worldPod struct {
	size, left resources.Amount
	reports    time.Time // when its slot comes into the collector
	empty      time.Time // since when it has had no job
	jobs       []worldJob
}

type worldJob struct {
	size resources.Amount
	ends time.Time
}

func newWorld(t *testing.T, seed uint64) *world {
	s := newSite(t)
	s.config.Templates[0].EndUnreported = 30 * time.Minute
	w := &world{site: s, chance: rand.New(rand.NewPCG(seed, 11)), pods: map[string]*worldPod{}}
	s.config.Limits.Pods = []int{0, 1, 5}[w.chance.IntN(3)]
	for i, cpus := range []int64{1, 1, 2, 4} {
		w.kinds = append(w.kinds, kindOfJob{
			text: fmt.Sprintf("Requirements = TARGET.Memory >= RequestMemory\nRequestCpus = %d\nRequestMemory = %d\nKind = %d", cpus, cpus*1500, i),
			size: resources.Amount{CPUs: cpus, Memory: cpus * 1536, Disk: 1}, on: fmt.Sprint("ap", i%2),
		})
	}
	s.restart(s.platform)
	return w
}

// minute lets a minute pass and does a round.
func (w *world) minute() Report {
	w.now = w.now.Add(time.Minute)
	if w.faults && w.chance.IntN(40) == 0 { // the clock, or nobody, was asleep
		w.now = w.now.Add(time.Duration(w.chance.IntN(90)) * time.Minute)
	}
	if w.faults && w.chance.IntN(30) == 0 {
		w.restart(w.platform)
	}
	w.advance()
	w.negotiate()
	w.show()
	return w.run()
}

// advance lets pods begin and end, and jobs end.
func (w *world) advance() {
	units, _ := w.platform.List(w.t.Context())
	for _, u := range units {
		p := w.pods[u.Name]
		switch {
		case u.Phase == platform.Ended:
			w.platform.Forget(u.Name)
		case u.Phase == platform.Pending && w.faults && w.chance.IntN(10) == 0:
			[]func(string){w.platform.Stick, w.platform.Refuse, w.platform.Fail}[w.chance.IntN(3)](u.Name)
		case u.Phase == platform.Pending && w.chance.IntN(3) == 0:
			w.begin(u)
		case p == nil:
		default:
			w.life(u.Name, p)
		}
	}
}

func (w *world) begin(u platform.Unit) {
	w.platform.Begin(u.Name)
	w.platform.Mark(u.Name, platform.Unused)
	p := &worldPod{reports: w.now.Add(time.Minute), empty: w.now.Add(time.Minute)}
	if w.faults && w.chance.IntN(20) == 0 {
		p.reports = w.now.Add(time.Duration(w.chance.IntN(60)) * time.Minute)
		p.empty = p.reports
	}
	if w.faults && w.chance.IntN(40) == 0 {
		p.reports = w.now.Add(1000 * time.Hour)
		p.empty = p.reports
	}
	p.size = w.round.shapes[w.round.find(u)].Pod
	p.left = p.size
	w.pods[u.Name] = p
}

func (w *world) life(name string, p *worldPod) {
	var jobs []worldJob
	for _, j := range p.jobs {
		if j.ends.After(w.now) {
			jobs = append(jobs, j)
			continue
		}
		p.left = p.left.Plus(j.size)
		p.empty = w.now
	}
	if p.jobs = jobs; len(jobs) == 0 && w.now.Sub(p.empty) >= 4*time.Minute {
		w.platform.Finish(name)
		delete(w.pods, name)
	}
}

// negotiate gives idle jobs the free room of pods in the pool, now and then.
func (w *world) negotiate() {
	if w.chance.IntN(4) == 0 {
		return
	}
	for i := range w.kinds {
		k := &w.kinds[i]
		for name, p := range w.pods {
			for k.idle > 0 && !w.now.Before(p.reports) && p.left.Fits(k.size) {
				k.idle--
				p.left = p.left.Minus(k.size)
				w.platform.Mark(name, platform.Used)
				p.jobs = append(p.jobs, worldJob{k.size, w.now.Add(time.Duration(1+w.chance.IntN(40)) * time.Minute)})
			}
		}
	}
}

// show lets collector and schedds say what is so, except for what is broken.
func (w *world) show() {
	w.pool.slots, w.pool.slotsErr, w.pool.groups, w.pool.demandErr = map[string]*supply.Pod{}, nil, nil, nil
	for name, p := range w.pods {
		if w.now.Before(p.reports) {
			continue
		}
		slot := &supply.Pod{Free: p.left}
		for _, j := range p.jobs {
			slot.Claims = append(slot.Claims, supply.Claim{Amount: j.size})
		}
		w.pool.slots[name] = slot
	}
	broken := -1
	if w.faults {
		broken = w.chance.IntN(12)
	}
	switch broken {
	case 0:
		w.pool.slots, w.pool.slotsErr = nil, errors.New("the collector is away")
	case 1:
		w.pool.slots = map[string]*supply.Pod{} // it has begun anew
	case 2:
		w.pool.demandErr = fmt.Errorf("a schedd is away: %w", demand.ErrPartial)
	}
	for _, k := range w.kinds {
		if k.idle > 0 && (broken != 2 || k.on == "ap0") {
			w.pool.groups = append(w.pool.groups, jobs(w.t, k.idle, k.text))
		}
	}
}

func (w *world) idle() int {
	n := 0
	for _, k := range w.kinds {
		n += k.idle
	}
	return n
}

// FuzzWorld lets jobs come to a site whose parts fail, and then lets all be well. No
// pod that has a job is ended or withdrawn, all jobs run in the end, and then all pods
// go and no other is made.
func FuzzWorld(f *testing.F) {
	for seed := range uint64(12) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		w := newWorld(t, seed)
		check := func(rep Report) {
			for _, name := range append(rep.Removed, rep.Withdrawn...) {
				if p := w.pods[name]; p != nil && len(p.jobs) > 0 {
					t.Fatalf("%s has %d jobs and is ended", name, len(p.jobs))
				}
				delete(w.pods, name)
			}
			if most := w.config.Limits.Pods; most > 0 && len(rep.Input.Pods)+len(rep.Made) > most {
				t.Fatalf("there are %d pods, and %d are made; the limit is %d", len(rep.Input.Pods), len(rep.Made), most)
			}
			if w.idle() == 0 && len(rep.Made) > 0 {
				t.Fatalf("%d pods are made for nobody", len(rep.Made))
			}
		}
		for w.faults = true; w.now.Before(time.Date(2026, 11, 2, 18, 0, 0, 0, time.UTC)); {
			if w.chance.IntN(10) == 0 {
				w.kinds[w.chance.IntN(len(w.kinds))].idle += w.chance.IntN(8)
			}
			if k := &w.kinds[w.chance.IntN(len(w.kinds))]; w.chance.IntN(50) == 0 {
				k.idle = 0 // somebody has removed them
			}
			check(w.minute())
		}
		w.faults = false
		// What no node has room for, or is refused, can begin from now on.
		for calm, before := 0, w.idle(); before > 0; calm++ {
			if n := w.idle(); n < before {
				calm, before = 0, n
			}
			if calm > 6*60 {
				rep := w.round.Run(t.Context())
				t.Fatalf("%d jobs wait for six hours, and none has begun: %+v\n%+v", w.idle(), rep.Output.Groups, rep.Units)
			}
			check(w.minute())
		}
		for range 3 * 60 {
			check(w.minute())
		}
		if n := w.units(); n[platform.Pending]+n[platform.Running] != 0 {
			t.Fatalf("without jobs there are %v", n)
		}
	})
}
