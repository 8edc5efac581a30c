package memcg

import (
	"sync"
	"time"

	"podstarter/rescue"
)

// Look is one reading and its time.
type Look struct {
	At time.Time // zero if there was none
	Figures
}

// Evidence is what a watch knows of a run's memory, above all at the moment of a kill.
type Evidence struct {
	// Last is the last look before the kill; without one, the last of all.
	Last Look
	// End is when the kill was noticed; without one, when the watch ended.
	End time.Time
	// Peak is the highest use of this run in bytes: the kernel's figure, or that of the looks
	// if the kernel's is an earlier run's. -1: not known.
	Peak int64
	// Limit is the lowest limit seen; -1 without one.
	Limit int64
	// Base is what was used when the run began.
	Base Figures
	// OOMKills counts the run's processes that the kernel killed for want of memory; -1: not known.
	OOMKills int64
	// Elsewhere is set if the kernel killed for another limit than this group's: its pod's, or
	// the node's memory.
	Elsewhere bool
}

// How often a watch looks. It supposes that a job can fill memory at a speed of fill even if
// it has not begun to, and looks again when it could have used half of its room.
const (
	fill      = 1 << 30 // bytes in a second
	leastWait = 20 * time.Millisecond
	// fullLooks is how often at least all files are read: reading memory.stat takes
	// the kernel up to a hundred times as long as reading one number.
	fullLooks = time.Second
	// share bounds the cost: after a look that took a time, there is none for share times
	// as long.
	share       = 500
	longestRest = 250 * time.Millisecond
)

// Watch looks at a group in a goroutine until it is stopped or the group is gone. Looks come
// the faster the less room the job has below its limit, and at once when the kernel reports
// that the limit is hit.
type Watch struct {
	files    *Files
	most     time.Duration // the longest wait between two looks
	ringer   *ringer       // nil if the kernel cannot report what happens at the limits
	bell     chan struct{} // of the ringer
	stopping chan struct{} // closed to end the watch
	over     chan struct{} // closed when it has ended
	stop     sync.Once
	begun    bool // it has a goroutine

	mu       sync.Mutex
	found    Evidence
	charged  int64     // at the last look of either kind
	highest  int64     // charged at any look
	previous Look      // the last look at all files
	whole    time.Time // when that was tried
}

// NewWatch begins to look, after at most that time each. It returns nil without files; the
// methods of a nil *Watch do nothing.
func NewWatch(files *Files, most time.Duration) *Watch {
	if files == nil {
		return nil
	}
	w := newWatch(files, most)
	if w.ringer = newRinger(files); w.ringer != nil {
		w.bell = w.ringer.bell
	}
	w.begun = true
	rescue.Go(func() {
		defer close(w.over)
		w.run()
	})
	return w
}

func newWatch(files *Files, most time.Duration) *Watch {
	return &Watch{
		files: files, most: most, stopping: make(chan struct{}), over: make(chan struct{}), charged: -1, highest: -1, previous: Look{Figures: None()},
		found: Evidence{Last: Look{Figures: None()}, Peak: -1, Limit: -1, OOMKills: -1, Base: files.began()},
	}
}

// Stop looks a last time and returns what was found. Later calls return the same.
func (w *Watch) Stop() Evidence {
	if w == nil {
		return Evidence{Last: Look{Figures: None()}, Peak: -1, Limit: -1, OOMKills: -1, Base: None()}
	}
	w.stop.Do(func() {
		close(w.stopping)
		w.ringer.end()
		if w.begun {
			<-w.over
		}
		w.look(true)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.found.End.IsZero() {
			w.found.End = time.Now()
		}
		w.found.Last = w.kept()
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.found
}

// kept is the look to report. w.mu is held.
func (w *Watch) kept() Look {
	if w.found.OOMKills > 0 {
		return w.found.Last
	}
	return w.previous
}

func (w *Watch) run() {
	for rung := true; ; {
		began := time.Now()
		known := w.look(rung)
		if !known {
			return
		}
		rest := min(max(share*time.Since(began), leastWait), longestRest)
		wait := max(w.wait(), rest)
		stopped := false
		if rung { // it may ring all the time: page cache at the limit, for example
			if stopped, _ = w.await(rest, false); stopped {
				return
			}
			wait -= rest
		}
		if stopped, rung = w.await(wait, true); stopped {
			return
		}
	}
}

// await waits until the watch is stopped, for at most a time; with events, also until the
// kernel reports something.
func (w *Watch) await(most time.Duration, events bool) (stopped, rung bool) {
	timer := time.NewTimer(max(most, 0))
	defer timer.Stop()
	bell := w.bell
	if !events {
		bell = nil
	}
	select {
	case <-w.stopping:
		return true, false
	case <-bell:
		return false, true
	case <-timer.C:
		return false, false
	}
}

// look reads the group; known is false if it is gone. Unless whole is set, it reads only one number
// while the group is far from its limit.
func (w *Watch) look(whole bool) (known bool) {
	at := time.Now()
	w.mu.Lock()
	limit, last := w.found.Limit, w.whole
	w.mu.Unlock()
	if !whole && at.Sub(last) < fullLooks {
		if now := w.files.charged(); now < 0 || limit < 0 || now < limit/2 {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.charged, w.highest = now, max(w.highest, now)
			return now >= 0
		}
	}
	now, known := w.files.Figures()
	if known {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.whole = at
		w.see(Look{at, now})
	}
	return known
}

// see adds a look at all files. w.mu is held.
func (w *Watch) see(l Look) {
	e := &w.found
	w.charged, w.highest = l.Current, max(w.highest, l.Current)
	e.Limit = Least(l.Limit) // it may have been changed
	e.Peak = w.highest
	if base := e.Base.Peak; l.Peak >= 0 && l.Peak != base {
		e.Peak = max(e.Peak, l.Peak) // higher than before the run, or begun anew
	}
	kills := since(l.OOMKills, e.Base.OOMKills)
	if kills > max(e.OOMKills, 0) {
		// The look before the kill, unless this one still finds more: the killed are slow
		// to give their memory back.
		before := w.previous
		if before.At.IsZero() || l.Own() > before.Own() {
			before = l
		}
		if e.End.IsZero() || before.Own() > e.Last.Own() {
			e.Last, e.End = before, l.At
		}
		e.Elsewhere = since(l.Hits, e.Base.Hits) == 0
	}
	e.OOMKills = kills
	w.previous = l
}

// since is -1 for a missing figure.
func since(now, base int64) int64 {
	if now < 0 {
		return -1
	}
	return max(0, now-max(base, 0))
}

// wait is when to look again.
func (w *Watch) wait() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return waitFor(w.found.Limit, w.charged-max(w.previous.Cache, 0), w.most)
}

// waitFor is the time in which a job that uses so much can use half of its room. Page cache
// is room: the kernel takes it back.
func waitFor(limit, used int64, most time.Duration) time.Duration {
	if limit < 0 {
		return most
	}
	room := max(limit-max(used, 0), 0)
	wait := time.Duration(float64(room) / 2 / fill * float64(time.Second))
	return min(max(wait, leastWait), most)
}
