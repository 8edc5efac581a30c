package simulation

import (
	"math"
	"math/rand/v2"
	"time"
)

// generator makes the queue and the world of a scenario.
type generator struct {
	random *rand.Rand
	q      Queue
	w      World
}

func newGenerator(seed uint64, length time.Duration) *generator {
	return &generator{random: rand.New(rand.NewPCG(seed, 1)), w: DefaultWorld(length)}
}

// last is when the last jobs are submitted; most are done by the end.
func (g *generator) last() time.Duration { return g.w.Length * 27 / 28 }

// between is a random time from a range, in seconds.
func (g *generator) between(from, to time.Duration) time.Duration {
	return (from + time.Duration(g.random.Float64()*float64(to-from))).Round(time.Second)
}

// around is a random run time: half of the jobs take less, few take several times
// as long.
func (g *generator) around(median time.Duration) time.Duration {
	factor := min(max(math.Exp(0.5*g.random.NormFloat64()), 0.2), 5)
	return (time.Duration(float64(median) * factor)).Round(time.Second)
}

// busy is how much of the peak is submitted at a time: a day has its peak at 14:00,
// and the last two of seven days are quiet. The first is a Monday.
func busy(at time.Duration) float64 {
	hour := math.Mod(at.Hours(), 24)
	level := 0.5 + 0.5*math.Cos((hour-14)/24*2*math.Pi)
	if int(at/day)%7 >= 5 {
		level *= 0.3
	}
	return 0.1 + 0.9*level
}

// stream submits single jobs at random times, so many an hour at the peak.
func (g *generator) stream(user string, class int, perHour float64, median time.Duration) {
	for at := time.Duration(0); ; {
		at += time.Duration(g.random.ExpFloat64() / perHour * float64(time.Hour))
		if at >= g.last() {
			return
		}
		if g.random.Float64() < busy(at) {
			g.q.Jobs = append(g.q.Jobs, Job{Submit: at.Round(time.Second), Run: g.around(median), Class: class, User: user})
		}
	}
}

// batch submits many jobs at once.
func (g *generator) batch(at time.Duration, user string, class, jobs int, from, to time.Duration) {
	for range jobs {
		g.q.Jobs = append(g.q.Jobs, Job{Submit: at, Run: g.between(from, to), Class: class, User: user})
	}
}

// plain are the templates that jobs without a GPU match.
func (g *generator) plain() []string {
	var names []string
	for _, t := range g.w.Templates {
		if t.Shapes[0].Size.GPUs == 0 {
			names = append(names, t.Name)
		}
	}
	return names
}

func (g *generator) diurnal() {
	small := g.q.class("small", amount(1, 2, 0), g.plain()...)
	middle := g.q.class("middle", amount(4, 8, 0), g.plain()...)
	for _, user := range []string{"ann", "ben", "cat", "dan"} {
		g.stream(user, small, 30, 40*time.Minute)
		g.stream(user, middle, 5, 40*time.Minute)
	}
}

func (g *generator) bursts() {
	c := []int{g.q.class("burst1", amount(1, 2, 0), g.plain()...), g.q.class("burst2", amount(2, 6, 0), g.plain()...)}
	for at := g.between(0, time.Hour); at < g.last(); at += g.between(2*time.Hour, 8*time.Hour) {
		user := []string{"eve", "fay"}[g.random.IntN(2)]
		g.batch(at, user, c[g.random.IntN(2)], 100+g.random.IntN(500), 15*time.Minute, time.Hour)
	}
}

func (g *generator) short() {
	c := g.q.class("short", amount(1, 2, 0), g.plain()...)
	for at := g.between(0, time.Hour); at < g.last(); at += g.between(20*time.Minute, 100*time.Minute) {
		g.batch(at, []string{"gil", "hal"}[g.random.IntN(2)], c, 200+g.random.IntN(800), time.Minute, 5*time.Minute)
	}
}

func (g *generator) shapes() {
	for i, gb := range []int64{1, 2, 3, 5, 6, 10} {
		c := g.q.class("one"+string(rune('a'+i)), amount(1, gb, 0), g.plain()...)
		g.stream([]string{"ida", "jan"}[i%2], c, 12, 45*time.Minute)
	}
	for i, gb := range []int64{6, 9, 12, 15} {
		c := g.q.class("four"+string(rune('a'+i)), amount(4, gb, 0), g.plain()...)
		g.stream([]string{"jan", "kim"}[i%2], c, 4, time.Hour)
	}
	for i, gb := range []int64{16, 30} {
		c := g.q.class("eight"+string(rune('a'+i)), amount(8, gb, 0), g.plain()...)
		g.stream("lea", c, 3, 90*time.Minute)
	}
	g.stream("mia", g.q.class("gpu", amount(4, 12, 1), "gpu"), 3, time.Hour)
}

func (g *generator) unmatchable() {
	g.stream("ann", g.q.class("small", amount(1, 2, 0), g.plain()...), 20, 40*time.Minute)
	g.hopeless()
}

// hopeless submits jobs that match nothing: some ask for what others have too, and
// some for more than any pod has.
func (g *generator) hopeless() {
	g.batch(time.Hour, "ned", g.q.class("other-os", amount(1, 2, 0)), 150, time.Hour, time.Hour)
	g.batch(2*time.Hour, "ned", g.q.class("typo", amount(4, 8, 0)), 50, time.Hour, time.Hour)
	g.batch(g.w.Length/2, "oda", g.q.class("huge", amount(64, 64, 0), g.plain()...), 200, time.Hour, time.Hour)
}

// second adds a site that is preferred to the first.
func (g *generator) second() *Site {
	g.w.addSite("second", 8, 0)
	g.w.Templates[len(g.w.Templates)-1].Rank = 1
	return &g.w.Sites[len(g.w.Sites)-1]
}

// sevenths is a part of the run, in days of a week.
func (g *generator) sevenths(from, to float64) Window {
	return Window{time.Duration(from / 7 * float64(g.w.Length)), time.Duration(to / 7 * float64(g.w.Length))}
}

func (g *generator) broken() {
	s := g.second()
	s.Failing = []Window{g.sevenths(0.5, 2.5)}
	s.Silent = []Window{g.sevenths(3, 5)}
	g.diurnal()
}

func (g *generator) full() {
	s := g.second()
	for d := range 7 {
		s.Full = append(s.Full, g.sevenths(float64(d)+0.3, float64(d)+0.8))
	}
	g.diurnal()
}

func (g *generator) preempted() {
	g.w.Sites[0].Preempted = 6 * time.Hour
	g.diurnal()
}

func (g *generator) unreachable() {
	g.diurnal()
	for d := range 7 {
		g.w.Outages = append(g.w.Outages, Outage{Window: g.sevenths(float64(d)+0.5, float64(d)+0.625), Users: []string{"ann", "ben"}})
	}
}

func (g *generator) all() {
	s := g.second()
	s.Failing = []Window{g.sevenths(1.3, 1.8)}
	s.Silent = []Window{g.sevenths(3.4, 3.9)}
	s.Full = []Window{g.sevenths(2.4, 2.8), g.sevenths(4.2, 4.9)}
	g.w.Sites[0].Preempted = 24 * time.Hour
	g.w.Outages = []Outage{{Window: g.sevenths(2.5, 2.62), Users: []string{"ann", "ben", "gil"}}}
	g.diurnal()
	g.bursts()
	g.short()
	g.shapes()
	g.hopeless()
}
