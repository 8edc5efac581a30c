package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/integration/harness"
)

// cost adds up what processes of some names use that descend from a few daemons:
// starters below a startd, and shadows below the schedd. HTCondor forks for each
// transfer; those children have their parent's name and are counted with it.
//
// Processes are looked at every few milliseconds, since what the kernel counts
// goes with them: what one uses between the last look and its end is missing.
type cost struct {
	daemons []int

	mu    sync.Mutex
	seen  map[int]*used
	names []string
}

// used is what one process has used.
type used struct {
	name        string
	first, last time.Duration // CPU time before this began, and when it was last looked at
	peak        int64         // resident memory, KiB
}

const (
	lookInterval = 4 * time.Millisecond
	findEvery    = 4 // looks
)

// newCost finds the daemons. Names are as in the process table.
func newCost(daemons func(harness.Process) bool, names ...string) (*cost, error) {
	found, err := harness.Processes(daemons)
	if err != nil {
		return nil, err
	}
	c := &cost{seen: map[int]*used{}, names: names}
	for _, p := range found {
		c.daemons = append(c.daemons, p.PID)
	}
	if len(c.daemons) == 0 {
		return nil, errors.New("none of the daemons to watch is running")
	}
	c.look(true)
	for _, u := range c.seen {
		u.first = u.last // a shadow may have served other jobs
	}
	return c, nil
}

// watch looks until the context ends.
func (c *cost) watch(ctx context.Context) {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for n := 0; ; n++ {
		c.look(n%findEvery == 0)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// look reads the clocks of all known processes and finds new ones.
func (c *cost) look(find bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if find {
		for _, pid := range c.daemons {
			c.children(pid)
		}
	}
	for pid, u := range c.seen {
		if used, err := processTime(pid); err == nil {
			u.last = used
		}
		if find {
			if peak, name := memoryOf(pid); name == u.name {
				u.peak = max(u.peak, peak)
			}
		}
	}
}

// children finds processes below one.
func (c *cost) children(pid int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for field := range strings.FieldsSeq(string(text)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				continue
			}
			if c.seen[child] == nil {
				// A process that gets a new name has no arguments for a moment.
				p, err := harness.ReadProcess(child)
				if err != nil || !slices.Contains(c.names, p.Comm) || len(p.Args) == 0 || p.IsErrand() {
					continue
				}
				c.seen[child] = &used{name: p.Comm}
			}
			c.children(child)
		}
	}
}

// processTime is the CPU time of a process, user and system, ended threads
// included (clock_getcpuclockid(3)).
func processTime(pid int) (time.Duration, error) {
	const scheduled = 2 // include/linux/posix-timers.h: CPUCLOCK_SCHED
	var t unix.Timespec
	err := unix.ClockGettime(int32(^pid)<<3|scheduled, &t)
	return time.Duration(t.Nano()), err
}

// memoryOf returns the peak resident memory of a process in KiB, and its name.
func memoryOf(pid int) (peak int64, name string) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, ""
	}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		switch key {
		case "Name":
			name = strings.TrimSpace(value)
		case "VmHWM":
			peak, _ = strconv.ParseInt(strings.Fields(value)[0], 10, 64)
		}
	}
	return peak, name
}

// cpu is what the processes of a name have used so far.
func (c *cost) cpu(name string) time.Duration {
	c.look(false)
	c.mu.Lock()
	defer c.mu.Unlock()
	var sum time.Duration
	for _, u := range c.seen {
		if u.name == name {
			sum += u.last - u.first
		}
	}
	return sum
}

// peak is the greatest value of the processes of a name, KiB.
func (c *cost) peak(name string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	var most int64
	for _, u := range c.seen {
		if u.name == name {
			most = max(most, u.peak)
		}
	}
	return most
}
