package runtimes

import (
	"fmt"
	"testing"
	"time"
)

var start = time.Date(2026, 11, 2, 8, 0, 0, 0, time.UTC)

// look is one minute of a test.
type look struct {
	groups []Group
	pods   map[string]Pod
}

// watch looks once a minute.
func watch(l *Learner, looks ...look) time.Time {
	now := start
	if !l.last.IsZero() {
		now = l.last
	}
	for _, k := range looks {
		now = now.Add(time.Minute)
		l.Look(now, k.groups, k.pods)
	}
	return now
}

func of(group, cluster string) []Group {
	return []Group{{ID: group, Clusters: []Cluster{{"ap.example.org", cluster}}}}
}

func runs(began time.Time, ids ...string) Pod {
	var p Pod
	for _, id := range ids {
		p.Jobs = append(p.Jobs, Job{ID: id, Began: began})
	}
	return p
}

func expect(t *testing.T, l *Learner, group string, want time.Duration) {
	t.Helper()
	if got := l.Runtime(group); got != want {
		t.Errorf("jobs of %s run for %s, want %s", group, got, want)
	}
}

// A job that was in a slot and is not there any more has ended between both looks.
func TestJobsThatEnd(t *testing.T) {
	var l Learner
	began := start.Add(time.Minute)
	p := map[string]Pod{"p": runs(began, "ap.example.org#7.0#1", "ap.example.org#7.1#1")}
	watch(&l, look{of("g", "7"), p}, look{nil, p}, look{nil, p})
	expect(t, &l, "g", 0)
	watch(&l, look{nil, map[string]Pod{"p": runs(began, "ap.example.org#7.1#1")}})
	expect(t, &l, "g", 150*time.Second) // between two and three minutes
	job := Job{ID: "ap.example.org#7.1#1", Began: began}
	if got := l.Until(job); !got.Equal(began.Add(150 * time.Second)) {
		t.Errorf("the other job ends at %s", got)
	}
	if got := l.Until(Job{ID: "ap.example.org#8.0#1", Began: began}); !got.IsZero() {
		t.Errorf("a job of which nothing is known ends at %s", got)
	}
}

// A pod that is gone was perhaps removed with its jobs, and after a long time
// without a look nobody knows when a job ended.
func TestEndsThatSayNothing(t *testing.T) {
	for name, lose := range map[string]func(l *Learner){
		"the pod is gone": func(l *Learner) { watch(l, look{nil, nil}) },
		"a long pause":    func(l *Learner) { l.Look(l.last.Add(gap+time.Second), nil, map[string]Pod{"p": {}}) },
		"the clock was set back": func(l *Learner) {
			l.Look(l.last.Add(-time.Hour), nil, map[string]Pod{"p": {}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			var l Learner
			watch(&l, look{of("g", "7"), map[string]Pod{"p": runs(start, "ap.example.org#7.0#1")}})
			lose(&l)
			expect(t, &l, "g", 0)
		})
	}
}

// The startd counts jobs that are too short to be seen.
func TestFiguresOfTheStartd(t *testing.T) {
	var l Learner
	pod := func(id string, ended int, busy time.Duration) map[string]Pod {
		p := runs(start, id)
		p.Ended, p.Busy = ended, busy
		return map[string]Pod{"p": p}
	}
	watch(&l,
		look{of("g", "7"), pod("ap.example.org#7.0#1", 100, time.Hour)},
		look{nil, pod("ap.example.org#7.9#1", 109, time.Hour+90*time.Second)})
	expect(t, &l, "g", 10*time.Second)
	// The slot is empty, and the figures come a minute later.
	watch(&l, look{nil, map[string]Pod{"p": {Ended: 109, Busy: time.Hour + 90*time.Second}}})
	expect(t, &l, "g", 10*time.Second)
	watch(&l, look{nil, map[string]Pod{"p": {Ended: 110, Busy: time.Hour + 150*time.Second}}})
	expect(t, &l, "g", 20*time.Second)
}

// Figures of a startd whose jobs are of several groups belong to none of them.
func TestPodOfSeveralGroups(t *testing.T) {
	var l Learner
	both := runs(start, "ap.example.org#7.0#1", "ap.example.org#8.0#1")
	left := runs(start, "ap.example.org#8.0#1")
	left.Ended, left.Busy = 5, 5*time.Hour
	watch(&l, look{append(of("g", "7"), of("h", "8")...), map[string]Pod{"p": both}}, look{nil, map[string]Pod{"p": left}})
	expect(t, &l, "g", 90*time.Second)
	expect(t, &l, "h", 0)
}

// A cluster whose jobs are in several groups teaches nothing, whenever that shows.
func TestClusterOfSeveralGroups(t *testing.T) {
	var l Learner
	p := map[string]Pod{"p": runs(start, "ap.example.org#7.0#1")}
	watch(&l, look{of("g", "7"), p}, look{of("h", "7"), p}, look{of("g", "7"), map[string]Pod{"p": {}}})
	expect(t, &l, "g", 0)
	expect(t, &l, "h", 0)
}

// A schedd may be configured by a short name.
func TestNamesOfSchedds(t *testing.T) {
	for configured, id := range map[string]string{
		"ap":             "ap.example.org#7.0#1",
		"AP.example.org": "ap.example.org#7.0#1",
		"second@ap":      "second@ap.example.org#7.0#1",
	} {
		var l Learner
		g := []Group{{ID: "g", Clusters: []Cluster{{configured, "7"}}}}
		watch(&l, look{g, map[string]Pod{"p": runs(start, id)}}, look{g, map[string]Pod{"p": {}}})
		expect(t, &l, "g", 90*time.Second)
	}
	var l Learner
	for _, id := range []string{"", "#", "ap", "ap#", "ap#x", "#7.0"} {
		if l.group(id) != "" {
			t.Errorf("%q is a job", id)
		}
	}
}

// What jobs say of themselves is a bound.
func TestStatedTimes(t *testing.T) {
	var l Learner
	g := of("g", "7")
	g[0].Stated = time.Hour
	p := map[string]Pod{"p": runs(start, "ap.example.org#7.0#1")}
	watch(&l, look{g, p})
	expect(t, &l, "g", time.Hour)
	watch(&l, look{g, map[string]Pod{"p": {}}})
	expect(t, &l, "g", 90*time.Second)
	g[0].Stated = time.Minute
	watch(&l, look{g, nil})
	expect(t, &l, "g", time.Minute)
}

func TestMean(t *testing.T) {
	m := Mean(0, time.Minute, 1)
	if m = Mean(m, 2*time.Minute, 1); m != 72*time.Second {
		t.Errorf("the mean is %s, want 1m12s", m)
	}
	if m = Mean(m, time.Hour, 1<<40); m < 59*time.Minute {
		t.Errorf("after many jobs of an hour the mean is %s", m)
	}
}

// What is remembered is bounded, and goes when nobody needs it.
func TestForgetting(t *testing.T) {
	var l Learner
	var many []Group
	for i := range most + 10 {
		many = append(many, of(fmt.Sprint("g", i), fmt.Sprint(i))...)
	}
	l.Look(start, many, nil)
	if l.groups.len() != most || l.clusters.len() != most {
		t.Errorf("%d groups and %d clusters are remembered, at most %d may be", l.groups.len(), l.clusters.len(), most)
	}
	p := map[string]Pod{"p": runs(start, "ap.example.org#17.0#1")}
	for i := range 3 {
		l.Look(start.Add(time.Duration(i+1)*forget*2/3), nil, p)
	}
	if l.groups.len() != 1 || l.clusters.len() != 1 {
		t.Errorf("%d groups and %d clusters are remembered, and only one has a job that runs", l.groups.len(), l.clusters.len())
	}
}
