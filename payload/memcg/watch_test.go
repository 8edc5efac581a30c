package memcg

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// group is a memory control group made of plain files.
type group struct {
	t       *testing.T
	version int
	dir     string
}

// newGroup makes one with a limit of 1000 bytes, in which the wrapper uses 10.
func newGroup(t *testing.T, version int) *group {
	t.Helper()
	g := &group{t, version, t.TempDir()}
	if version == 1 {
		g.set("memory.limit_in_bytes=1000", "memory.oom_control=oom_kill_disable 0\nunder_oom 0\noom_kill 0")
	} else {
		g.set("memory.max=1000", "memory.events=low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0", "memory.swap.current=0")
	}
	g.use(10, 10, 0, 0)
	return g
}

// set changes files in one step each, as the kernel does: a watch may read them meanwhile.
func (g *group) set(files ...string) {
	g.t.Helper()
	for _, file := range files {
		name, text, _ := strings.Cut(file, "=")
		f, err := os.OpenFile(filepath.Join(g.dir, name), os.O_WRONLY|os.O_CREATE, 0o600)
		if err == nil {
			if text == "" {
				err = f.Truncate(0)
			} else {
				_, err = f.WriteString(text + strings.Repeat("\n", 300-len(text)))
			}
			f.Close()
		}
		if err != nil {
			g.t.Fatal(err)
		}
	}
}

// use makes the group use so many bytes of each kind.
func (g *group) use(peak, anon, shared, cache int) {
	g.t.Helper()
	if g.version == 1 {
		g.set(fmt.Sprintf("memory.usage_in_bytes=%d", anon+shared+cache), fmt.Sprintf("memory.max_usage_in_bytes=%d", peak),
			fmt.Sprintf("memory.stat=cache 1\nhierarchical_memory_limit 1000\ntotal_rss %d\ntotal_shmem %d\ntotal_cache %d", anon, shared, shared+cache))
		return
	}
	g.set(fmt.Sprintf("memory.current=%d", anon+shared+cache), fmt.Sprintf("memory.peak=%d", peak), fmt.Sprintf("memory.stat=anon %d\nfile %d\nshmem %d", anon, shared+cache, shared))
}

// kill says that the kernel has killed so many processes, for the group's own limit so many times.
func (g *group) kill(hits, kills int) {
	g.t.Helper()
	if g.version == 1 {
		g.set(fmt.Sprintf("memory.oom_control=oom_kill_disable 0\nunder_oom 0\noom_kill %d", kills))
		return
	}
	g.set(fmt.Sprintf("memory.events=low 0\nhigh 0\nmax 17\noom %d\noom_kill %d\noom_group_kill 1", hits, kills))
}

// vanish makes the group one that was removed.
func (g *group) vanish() {
	for _, name := range Names(g.version) {
		g.set(name + "=")
	}
}

func (g *group) open() *Files {
	g.t.Helper()
	names, opened := Open(g.version, g.dir, nil)
	files, err := NewFiles(g.version, -1, names, opened, func(*os.File) error { return nil })
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(files.Close)
	return files
}

// TestWatch: what is known after the kernel has killed for want of memory, for the ways in
// which a job can get there.
func TestWatch(t *testing.T) {
	type known struct {
		Peak, Limit, OOMKills int64
		Elsewhere             bool
		Own, Cache            int64
		AtTheKill             bool // the last look was the one that noticed the kill
	}
	tests := map[string]struct {
		version int
		before  func(*group) // the run
		steps   []func(*group)
		want    known
	}{
		"grows slowly, killed with its wrapper": {
			version: 2,
			steps: []func(*group){
				func(g *group) { g.use(300, 290, 0, 10) }, func(g *group) { g.use(700, 690, 0, 10) }, func(g *group) { g.use(990, 980, 0, 5) },
				func(g *group) { g.use(1000, 0, 0, 5); g.kill(1, 2) },
			},
			want: known{Peak: 1000, Limit: 1000, OOMKills: 2, Own: 980, Cache: 5},
		},
		"grows slowly, killed alone": {
			version: 2,
			steps: []func(*group){
				func(g *group) { g.use(950, 940, 0, 10) }, func(g *group) { g.use(1000, 20, 0, 10); g.kill(1, 1) },
				func(g *group) { g.use(1000, 300, 0, 10) },
			},
			want: known{Peak: 1000, Limit: 1000, OOMKills: 1, Own: 940, Cache: 10},
		},
		"version 1": {
			version: 1,
			steps:   []func(*group){func(g *group) { g.use(950, 900, 40, 10) }, func(g *group) { g.use(1000, 20, 0, 10); g.kill(0, 1) }},
			want:    known{Peak: 1000, Limit: 1000, OOMKills: 1, Own: 940, Cache: 10},
		},
		"one leap": {
			version: 2,
			steps:   []func(*group){func(g *group) { g.use(50, 40, 0, 10) }, func(g *group) { g.use(1000, 3, 0, 0); g.kill(1, 2) }},
			want:    known{Peak: 1000, Limit: 1000, OOMKills: 2, Own: 40, Cache: 10},
		},
		"one leap, and the killed are slow to give their memory back": {
			version: 2,
			steps:   []func(*group){func(g *group) { g.use(50, 40, 0, 10) }, func(g *group) { g.use(1000, 900, 0, 0); g.kill(1, 2) }},
			want:    known{Peak: 1000, Limit: 1000, OOMKills: 2, Own: 900, AtTheKill: true},
		},
		"page cache": {
			version: 2,
			steps: []func(*group){
				func(g *group) { g.use(1000, 150, 0, 850) }, func(g *group) { g.use(1000, 600, 0, 400) }, func(g *group) { g.use(1000, 960, 0, 40) },
				func(g *group) { g.use(1000, 0, 0, 40); g.kill(1, 2) },
			},
			want: known{Peak: 1000, Limit: 1000, OOMKills: 2, Own: 960, Cache: 40},
		},
		"shared memory, which outlives the processes": {
			version: 2,
			steps:   []func(*group){func(g *group) { g.use(990, 10, 970, 10) }, func(g *group) { g.use(1000, 1, 985, 10); g.kill(1, 3) }},
			want:    known{Peak: 1000, Limit: 1000, OOMKills: 3, Own: 986, Cache: 10, AtTheKill: true},
		},
		"many processes, killed one after the other": {
			version: 2,
			steps: []func(*group){
				func(g *group) { g.use(990, 980, 0, 10) }, func(g *group) { g.use(1000, 700, 0, 10); g.kill(1, 5) }, func(g *group) { g.use(1000, 300, 0, 10); g.kill(1, 17) },
			},
			want: known{Peak: 1000, Limit: 1000, OOMKills: 17, Own: 980, Cache: 10},
		},
		"in its first second": {
			version: 2,
			steps:   []func(*group){func(g *group) { g.use(1000, 0, 0, 0); g.kill(1, 2) }},
			want:    known{Peak: 1000, Limit: 1000, OOMKills: 2, AtTheKill: true},
		},
		"in its first second, and the group is gone": {
			version: 2,
			steps:   []func(*group){(*group).vanish},
			want:    known{Peak: -1, Limit: -1, OOMKills: -1, Own: -1, Cache: -1},
		},
		"the group is gone before the kill is noticed": {
			version: 2,
			steps:   []func(*group){func(g *group) { g.use(950, 940, 0, 10) }, (*group).vanish},
			want:    known{Peak: 950, Limit: 1000, OOMKills: 0, Own: 940, Cache: 10},
		},
		"another limit than the group's": {
			version: 2,
			steps:   []func(*group){func(g *group) { g.use(500, 490, 0, 10) }, func(g *group) { g.use(500, 0, 0, 10); g.kill(0, 2) }},
			want:    known{Peak: 500, Limit: 1000, OOMKills: 2, Elsewhere: true, Own: 490, Cache: 10},
		},
		"a kept container whose earlier job was killed": {
			version: 2,
			before:  func(g *group) { g.use(1000, 10, 0, 0); g.kill(3, 4) },
			steps:   []func(*group){func(g *group) { g.use(1000, 200, 0, 10) }},
			want:    known{Peak: 210, Limit: 1000, OOMKills: 0, Own: 200, Cache: 10},
		},
		"a kept container whose earlier job was killed, and this one": {
			version: 2,
			before:  func(g *group) { g.use(1000, 10, 0, 0); g.kill(3, 4) },
			steps:   []func(*group){func(g *group) { g.use(1000, 940, 0, 10) }, func(g *group) { g.use(1000, 0, 0, 10); g.kill(4, 6) }},
			want:    known{Peak: 950, Limit: 1000, OOMKills: 2, Own: 940, Cache: 10},
		},
		"a kept container whose peak was begun anew": {
			version: 2,
			before:  func(g *group) { g.use(1000, 10, 0, 0) },
			steps:   []func(*group){func(g *group) { g.use(600, 200, 0, 10) }},
			want:    known{Peak: 600, Limit: 1000, OOMKills: 0, Own: 200, Cache: 10},
		},
		"resized": {
			version: 2,
			steps:   []func(*group){func(g *group) { g.use(900, 890, 0, 10) }, func(g *group) { g.set("memory.max=2000"); g.use(1900, 1890, 0, 10) }},
			want:    known{Peak: 1900, Limit: 2000, OOMKills: 0, Own: 1890, Cache: 10},
		},
		"an old kernel without a peak": {
			version: 2,
			before:  func(g *group) { g.set("memory.peak=") },
			steps: []func(*group){
				func(g *group) { g.use(0, 900, 0, 10); g.set("memory.peak=") },
				func(g *group) { g.use(0, 0, 0, 10); g.set("memory.peak="); g.kill(1, 2) },
			},
			want: known{Peak: 910, Limit: 1000, OOMKills: 2, Own: 900, Cache: 10},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			g := newGroup(t, tt.version)
			if tt.before != nil {
				tt.before(g)
			}
			files := g.open()
			files.Begin()
			w := newWatch(files, mostWait)
			var last time.Time
			for i, step := range tt.steps {
				step(g)
				last = time.Now()
				if i < len(tt.steps)-1 {
					w.look(true)
				}
			}
			e := w.Stop()
			if diff := cmp.Diff(e, w.Stop()); diff != "" {
				t.Errorf("the second Stop found something else:\n%s", diff)
			}
			got := known{e.Peak, e.Limit, e.OOMKills, e.Elsewhere, e.Last.Own(), e.Last.Cache, e.OOMKills > 0 && e.Last.At.Equal(e.End)}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if e.End.IsZero() || e.Last.At.After(e.End) || tt.want.AtTheKill && e.Last.At.Before(last) {
				t.Errorf("the last look was at %s, the end at %s", e.Last.At, e.End)
			}
		})
	}
}

// TestLooksByNeed: far from the limit only one number is read, near it all files are.
func TestLooksByNeed(t *testing.T) {
	g := newGroup(t, 2)
	w := newWatch(g.open(), mostWait)
	defer w.Stop()
	w.look(true)
	for _, step := range []struct {
		current int
		whole   bool
	}{{400, false}, {499, false}, {500, true}, {990, true}, {100, false}} {
		g.use(step.current, step.current, 0, 0)
		if !w.look(false) {
			t.Fatal("the group is gone")
		}
		if whole := w.previous.Anon == int64(step.current); whole != step.whole || w.charged != int64(step.current) {
			t.Errorf("at %d all files were read: %t; charged are %d", step.current, whole, w.charged)
		}
	}
	if w.whole = w.whole.Add(-2 * fullLooks); !w.look(false) || w.previous.Anon != 100 {
		t.Error("all files are not read now and then")
	}
}

// mostWait is what a site may have set.
const mostWait = 250 * time.Millisecond

// TestWait: the less room there is, the sooner comes the next look; page cache is room.
func TestWait(t *testing.T) {
	const gib = 1 << 30
	last := mostWait
	for _, used := range []int64{0, gib / 2, gib * 9 / 10, gib * 99 / 100, gib, 2 * gib} {
		wait := waitFor(gib, used, mostWait)
		if wait > last || wait < leastWait || wait > mostWait {
			t.Errorf("%s with %d used", wait, used)
		}
		last = wait
	}
	if last != leastWait || waitFor(-1, gib, mostWait) != mostWait || waitFor(64<<20, 0, mostWait) >= mostWait {
		t.Errorf("%s at the limit, %s without one, %s with a small one", last, waitFor(-1, gib, mostWait), waitFor(64<<20, 0, mostWait))
	}
	if got := waitFor(64*gib, 0, 5*time.Second); got != 5*time.Second {
		t.Errorf("%s with much room", got)
	}
	w := newWatch(newGroup(t, 2).open(), mostWait)
	w.found.Limit, w.charged, w.previous.Cache = gib, gib, gib*9/10
	if got, want := w.wait(), waitFor(gib, gib-gib*9/10, mostWait); got != want {
		t.Errorf("%s with a full page cache, want %s", got, want)
	}
}

// TestWatchEnds: a watch sees growth by itself, and ends when the group is gone.
func TestWatchEnds(t *testing.T) {
	for _, version := range []int{1, 2} {
		g := newGroup(t, version)
		files := g.open()
		files.Begin()
		w := NewWatch(files, mostWait)
		g.use(800, 790, 0, 10)
		for seen := int64(0); seen != 790; {
			select {
			case <-w.over:
				t.Fatal("it has ended")
			case <-time.After(time.Millisecond):
			}
			w.mu.Lock()
			seen = w.previous.Own()
			w.mu.Unlock()
		}
		g.vanish()
		select {
		case <-w.over:
		case <-time.After(20 * time.Second):
			t.Error("it goes on without a group")
		}
		if e := w.Stop(); e.Last.Own() != 790 || e.Peak != 800 {
			t.Errorf("%+v", e)
		}
	}
	var none *Watch
	if e := none.Stop(); e.Peak != -1 || e.OOMKills != -1 || NewWatch(nil, mostWait) != nil {
		t.Errorf("%+v", e)
	}
}

// TestKillsBeforeTheFiles: what the kernel killed in a kept container before its files came is
// not this run's, although nobody has said that a run begins.
func TestKillsBeforeTheFiles(t *testing.T) {
	for _, version := range []int{1, 2} {
		g := newGroup(t, version)
		g.use(100, 50, 0, 0)
		g.kill(3, 3)
		if found := NewWatch(g.open(), mostWait).Stop(); found.OOMKills != 0 {
			t.Errorf("version %d: %d kills of an earlier run count as this one's", version, found.OOMKills)
		}
	}
}
