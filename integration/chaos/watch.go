//go:build pool

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/integration/harness"
)

// lookEvery is how often the test looks at the payloads' processes from outside.
// Jobs of a tenth of a second are seen; shorter ones have their own accounts.
const lookEvery = 50 * time.Millisecond

// chaos kills and watches while jobs run.
type chaos struct {
	pool    *harness.Pool
	users   int // payload users, and payload containers
	base    int // the first of them
	random  *rand.Rand
	mean    time.Duration // between two kills
	mu      sync.Mutex
	kills   []Kill
	spans   map[processKey]*Sighting
	notes   notes
	noted   []string                   // what was not so
	pullers func(harness.Process) bool // processes of their pods; nil without pullers
	missing error                      // the first failure to look
}

// processKey tells a process from a later one of the same number.
type processKey struct {
	pid   int
	start string
}

// watch looks at the payloads' processes until ctx ends.
func (c *chaos) watch(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		if err := c.look(); err != nil && c.missing == nil {
			c.missing = err
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// look notes every process of a payload's user.
func (c *chaos) look() error {
	now := time.Now().UTC()
	found, err := c.payloads()
	for _, process := range found {
		c.saw(process, now)
	}
	if err != nil {
		return err
	}
	jobs := slices.DeleteFunc(found, func(p harness.Process) bool { return jobOf(p.Args) == "" })
	wrong, err := c.notes.wrong(c.base, jobs)
	c.noted = append(c.noted, wrong...)
	return err
}

// payloads are the processes of the payloads' users. The owner of a directory of
// /proc is the process's user, so the other processes cost almost nothing.
func (c *chaos) payloads() ([]harness.Process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var found []harness.Process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		info, err := os.Lstat(filepath.Join("/proc", entry.Name()))
		if err != nil {
			continue
		}
		st, ok := info.Sys().(*syscall.Stat_t)
		if !ok || int(st.Uid) < c.base || int(st.Uid) >= c.base+c.users {
			continue
		}
		process, err := harness.ReadProcess(pid)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) || err == nil && !c.pool.Payloads(harness.Ours, c.users)(process) {
			continue
		}
		if err != nil {
			return found, err
		}
		found = append(found, process)
	}
	return found, nil
}

func (c *chaos) saw(process harness.Process, now time.Time) {
	dir := filepath.Join("/proc", strconv.Itoa(process.PID))
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return
	}
	// The name may contain anything but ends with the last parenthesis. The start
	// time is the 20th field after it (proc_pid_stat(5)).
	const startTime = 19
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) <= startTime {
		return
	}
	key := processKey{process.PID, fields[startTime]}
	job := jobOf(process.Args)
	if s, ok := c.spans[key]; ok {
		s.Last = now
		if s.Job == "" { // it was the launcher still
			s.Job = job
		}
		return
	}
	group, err := os.ReadFile(filepath.Join(dir, "cgroup"))
	if err != nil {
		return
	}
	c.spans[key] = &Sighting{UID: process.UID, PID: process.PID, Job: job, Container: filepath.Base(strings.TrimSpace(string(group))), First: now, Last: now}
}

// jobOf is the job that a process of the probe belongs to, by its arguments.
func jobOf(args []string) string {
	for i, arg := range args {
		if arg == "--" && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}

// some waits for processes, but not for long: there may be none for a while.
func (c *chaos) some(ctx context.Context, list func() ([]harness.Process, error)) ([]harness.Process, error) {
	ctx, cancel := context.WithTimeout(ctx, c.mean)
	defer cancel()
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		found, err := list()
		if len(found) > 0 || err != nil {
			return found, err
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-ticker.C:
		}
	}
}

// mainProcesses are those with whose end the job ends.
func (c *chaos) mainProcesses() ([]harness.Process, error) {
	found, err := c.payloads()
	return slices.DeleteFunc(found, func(p harness.Process) bool { return jobOf(p.Args) == "" }), err
}

// harass kills processes of random kinds at random moments until ctx ends.
func (c *chaos) harass(ctx context.Context) error {
	type kind struct {
		name string
		list func() ([]harness.Process, error)
	}
	kinds := []kind{
		{KindStarter, func() ([]harness.Process, error) { return harness.Processes(c.pool.Starters(harness.Ours)) }},
		{KindWrapper, func() ([]harness.Process, error) { return harness.Processes(c.pool.Wrappers(harness.Ours)) }},
		{KindPayload, c.mainProcesses},
	}
	if c.pullers != nil {
		kinds = append(kinds, kind{KindPuller, func() ([]harness.Process, error) { return harness.Processes(c.pullers) }})
	}
	for {
		pause := time.NewTimer(c.mean/2 + time.Duration(c.random.Int64N(int64(c.mean))))
		select {
		case <-ctx.Done():
			pause.Stop()
			return nil
		case <-pause.C:
		}
		kind := kinds[c.random.IntN(len(kinds))]
		// For most of an activation there is no payload: every other time, wait for
		// one.
		if c.random.IntN(2) == 0 {
			if _, err := c.some(ctx, c.mainProcesses); err != nil {
				return err
			}
		}
		victims, err := c.some(ctx, kind.list)
		if err != nil {
			return fmt.Errorf("looking for a %s to kill: %w", kind.name, err)
		}
		if len(victims) == 0 {
			continue
		}
		victim := victims[c.random.IntN(len(victims))]
		now := time.Now().UTC()
		if err := harness.Kill(victim, unix.SIGKILL); err != nil {
			continue // it went by itself
		}
		c.mu.Lock()
		c.kills = append(c.kills, Kill{kind.name, victim.Inner, now})
		c.mu.Unlock()
	}
}
