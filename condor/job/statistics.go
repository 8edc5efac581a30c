package job

import (
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"podstarter/classads"
)

// Default windows of the statistics (condor_utils/param_info.in).
const (
	defaultWindow  = 1200 // seconds that a Recent value looks back
	defaultQuantum = 240  // seconds by which the window moves
	// maxWindowSlots bounds the memory that a knob can ask for.
	maxWindowSlots = 10_000
)

// Statistics counts a job's block I/O, in total and during the window, which is
// 20 minutes by default (condor_starter.V6.1/vanilla_proc.cpp:StarterStatistics,
// condor_utils/generic_stats.cpp). Its methods are safe for concurrent use.
type Statistics struct {
	window, quantum int64
	publish         publication

	mu             sync.Mutex
	born           time.Time
	updated        time.Time // last call of Publish; zero before the first
	moved          time.Time // when the window last moved
	lifetime       int64     // seconds
	recentLifetime int64     // seconds that the Recent values cover

	reads, writes, readBytes, writeBytes counter
}

// publication is what STATISTICS_TO_PUBLISH selects.
type publication struct {
	level  int // 0: nothing; 2 and above: also the internals of the windows
	recent bool
}

// NewStatistics begins to count. The error lists knobs that cannot be parsed; for
// these it uses the defaults.
func NewStatistics(k Knobs, now time.Time) (*Statistics, error) {
	var problems error
	knob := func(name string, def, least int64) int64 {
		n, err := k.Int(name, def)
		if err == nil && n >= least {
			def = n
		}
		problems = errors.Join(problems, err)
		return def
	}
	s := &Statistics{born: now, publish: publication{level: 1, recent: true}}
	s.quantum = knob("STATISTICS_WINDOW_QUANTUM_STARTER", knob("STATISTICS_WINDOW_QUANTUM", defaultQuantum, 1), 1)
	s.window = knob("STATISTICS_WINDOW_SECONDS_STARTER", knob("STATISTICS_WINDOW_SECONDS", defaultWindow, s.quantum), 1)
	if what, ok := k.Lookup("STATISTICS_TO_PUBLISH"); ok {
		s.publish = parsePublication(what)
	}
	slots := make([]int64, 4*min(max(s.window/s.quantum, 1), maxWindowSlots))
	n := len(slots) / 4
	for i, c := range []*counter{&s.reads, &s.writes, &s.readBytes, &s.writeBytes} {
		c.slots = slots[i*n : (i+1)*n : (i+1)*n]
	}
	return s, problems
}

// parsePublication reads a list of POOL[:OPTIONS] and uses the entries for
// STARTER, ALL and DEFAULT: a digit is a level, R selects the Recent values, !
// negates (condor_utils/generic_stats.cpp:generic_stats_ParseConfigString).
func parsePublication(text string) publication {
	whole := publication{level: 1, recent: true}
	var p publication
	switch strings.ToUpper(text) {
	case "DEFAULT":
		return whole
	case "", "NONE":
		return p
	}
	for _, item := range strings.FieldsFunc(strings.ToUpper(text), func(r rune) bool { return r == ',' || isSpace(r) }) {
		pool, options, _ := strings.Cut(item, ":")
		if pool != "STARTER" && pool != "ALL" && pool != "DEFAULT" {
			continue
		}
		p = whole
		if options == "NONE" {
			p = publication{}
			continue
		}
		not := false // applies to all that follow, as in stock
		for _, c := range options {
			switch {
			case '0' <= c && c <= '3':
				p.level, _ = strconv.Atoi(string(c))
			case c == '!':
				not = true
			case c == 'R':
				p.recent = !not
			}
		}
	}
	return p
}

// counter is one number that grows.
type counter struct {
	value, recent int64
	slots         []int64 // a ring, one for each quantum of the window
	head          int
}

// set updates the current number.
func (c *counter) set(value int64) {
	grown := value - c.value
	c.value = value
	c.recent += grown
	c.slots[c.head] += grown
}

// move moves the window by n quanta.
func (c *counter) move(n int64) {
	for range min(n, int64(len(c.slots))) {
		c.head = (c.head + 1) % len(c.slots)
		c.recent -= c.slots[c.head]
		c.slots[c.head] = 0
	}
}

// tick moves the window to the present (generic_stats_Tick). The first call only
// starts the clock.
func (s *Statistics) tick(now time.Time) {
	if s.updated.IsZero() {
		s.updated, s.moved = now, now
		return
	}
	if now.Unix() != s.updated.Unix() {
		since := now.Unix() - s.moved.Unix()
		if n := since / s.quantum; n > 0 {
			for _, c := range []*counter{&s.reads, &s.writes, &s.readBytes, &s.writeBytes} {
				c.move(n)
			}
			s.moved = time.Unix(now.Unix()-since%s.quantum, 0)
		}
		s.recentLifetime = min(max(0, s.recentLifetime+now.Unix()-s.updated.Unix()), s.window)
		s.updated = now
	}
	s.lifetime = max(0, now.Unix()-s.born.Unix())
}

// Publish adds what the job has read and written so far, nil if unknown, and
// writes all figures into an update. Unknown figures are 0, as in the updates of
// the stock starter.
func (s *Statistics) Publish(ad *classads.Ad, io *IO, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tick(now)
	if io != nil {
		s.readBytes.set(max(0, io.ReadBytes))
		s.writeBytes.set(max(0, io.WriteBytes))
		s.reads.set(max(0, io.Reads))
		s.writes.set(max(0, io.Writes))
	}
	if s.publish.level == 0 {
		return
	}
	verbose := s.publish.level > 1
	ad.SetInt("StatsLifetime", s.lifetime)
	if verbose {
		ad.SetInt("StatsLastUpdateTime", s.updated.Unix())
	}
	if s.publish.recent {
		ad.SetInt("RecentStatsLifetime", s.recentLifetime)
		if verbose {
			ad.SetInt("RecentWindowMax", s.window)
			ad.SetInt("RecentStatsTickTime", s.moved.Unix())
		}
	}
	figures := []struct {
		name    string
		c       *counter
		unit    int64
		verbose bool
	}{
		{"BlockReads", &s.reads, 1, false},
		{"BlockWrites", &s.writes, 1, false},
		{"BlockReadKbytes", &s.readBytes, 1024, false},
		{"BlockWriteKbytes", &s.writeBytes, 1024, false},
		{"BlockReadBytes", &s.readBytes, 1, true},
		{"BlockWriteBytes", &s.writeBytes, 1, true},
	}
	for _, f := range figures {
		if f.verbose && !verbose {
			continue
		}
		ad.SetInt(f.name, f.c.value/f.unit)
		if s.publish.recent {
			ad.SetInt("Recent"+f.name, f.c.recent/f.unit)
		}
	}
}
