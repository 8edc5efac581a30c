// Package runtimes learns how long the jobs of a group run, from what the slots of
// the provisioner's own pods say: which jobs they have, since when, and how many
// have ended. The collector is asked for that anyway, so it costs nobody anything;
// the history of a schedd would have to be read from its disk.
//
// A job in a slot is known by its schedd and its number, and a group of idle jobs by
// the first and the last of its numbers. Jobs of a cluster that are in one group
// there are taken to be in it when they run. A cluster of which jobs are in several
// groups teaches nothing.
//
// All of it may be lost: then groups count as unknown until jobs of them end.
package runtimes

import (
	"slices"
	"strings"
	"time"
)

const (
	// weight is that of the last job in what is learnt. The simulation uses it, too.
	weight = 0.2
	// forget is how long a group or a cluster is remembered that nobody has seen.
	forget = 24 * time.Hour
	// most bounds groups, and clusters, of this pool's schedds, and mostOfGuests those of
	// others. In both there is room for mostSources schedds.
	most         = 50_000
	mostOfGuests = 25_000
	mostSources  = 1000
	// atOnce bounds how many jobs that ended together count: after these, next to
	// nothing of what was known before is left.
	atOnce = 50
	// gap is how long may be between two looks for a job's end to be known.
	gap = 10 * time.Minute
	// longest bounds what jobs and slots say.
	longest = 365 * 24 * time.Hour
)

// Mean returns the moving mean after a number of jobs that ran for so long. known is
// the mean before them, or 0.
func Mean(known, ran time.Duration, jobs int) time.Duration {
	for range min(jobs, atOnce) {
		mean := ran
		if known > 0 {
			mean = time.Duration(weight*float64(ran) + (1-weight)*float64(known))
		}
		known = mean.Round(time.Second)
	}
	return known
}

// Cluster is a cluster of jobs of a schedd.
type Cluster struct{ Schedd, Number string }

// Group is a group of idle jobs.
type Group struct {
	ID string
	// Source is a schedd that has such jobs. Guest: it is one of another pool.
	Source string
	Guest  bool
	// Clusters are those of which it is known that the group has jobs of them.
	Clusters []Cluster
	// Stated is how long its jobs run at most, as they say themselves; 0 if they do not.
	Stated time.Duration
}

// Job is a job that runs.
type Job struct {
	// ID is its GlobalJobId: SCHEDD#CLUSTER.PROC#TIME.
	ID    string
	Began time.Time
}

// Pod is what the slots of a pod say.
type Pod struct {
	Jobs []Job
	// Ended is how many jobs have ended in it, and Busy how long they had their slots
	// together. Both are 0 if the startd does not say it.
	Ended int
	Busy  time.Duration
}

// Learner is what is learnt. The zero value knows nothing. Only one goroutine may
// use it.
type Learner struct {
	groups   table[known]
	clusters table[home]
	pods     map[string]past
	last     time.Time
}

// past is what a pod said at the last look, and of which group the last jobs were
// that it had.
type past struct {
	Pod
	group string
}

// known is what is known of a group.
type known struct {
	mean, stated time.Duration
}

// home is the group of a cluster's jobs.
type home struct {
	group string // empty: there are several
}

// Look learns from what is there now. groups may lack those of a schedd that did not
// answer.
func (l *Learner) Look(now time.Time, groups []Group, pods map[string]Pod) {
	if l.groups.own == nil {
		l.groups, l.clusters = newTable[known](), newTable[home]()
	}
	l.meet(now, groups)
	since := now.Sub(l.last)
	// A pod that is gone may have been removed with its jobs.
	next := make(map[string]past, len(pods))
	for name, after := range pods {
		before, there := l.pods[name]
		group := l.common(before, after)
		if there && since > 0 && since <= gap {
			l.compare(before.Pod, after, group, l.last.Add(since/2))
		}
		for _, j := range after.Jobs {
			l.touch(j.ID, now)
		}
		next[name] = past{after, group}
	}
	l.pods, l.last = next, now
	l.drop(now)
}

// meet notes which clusters have jobs in which groups.
func (l *Learner) meet(now time.Time, groups []Group) {
	for _, g := range groups {
		k, _ := l.groups.part(g.Guest).meet(g.Source, g.ID, now)
		k.stated = min(max(g.Stated, 0), longest)
		for _, c := range g.Clusters {
			h, fresh := l.clusters.part(g.Guest).meet(g.Source, strings.ToLower(c.Schedd)+"#"+c.Number, now)
			switch {
			case fresh:
				h.group = g.ID
			case h.group != g.ID:
				h.group = ""
			}
		}
	}
}

// find returns the key of a job's cluster, and its home, or nil.
func (l *Learner) find(id string) (string, *home) {
	schedd, rest, ok := strings.Cut(id, "#")
	number, _, _ := strings.Cut(rest, ".")
	if !ok || number == "" || l.clusters.own == nil {
		return "", nil
	}
	schedd = strings.ToLower(schedd)
	key := schedd + "#" + number
	if h := l.clusters.find(key); h != nil {
		return key, h
	}
	// The configuration may name a schedd without its domain.
	at := strings.IndexByte(schedd, '@') + 1
	if dot := strings.IndexByte(schedd[at:], '.'); dot >= 0 {
		key = schedd[:at+dot] + "#" + number
		return key, l.clusters.find(key)
	}
	return "", nil
}

// group returns the group of a job, or nothing.
func (l *Learner) group(id string) string {
	if _, h := l.find(id); h != nil {
		return h.group
	}
	return ""
}

// touch notes that a job runs: what is known of its group is of use.
func (l *Learner) touch(id string, now time.Time) {
	key, h := l.find(id)
	if h == nil {
		return
	}
	l.clusters.touch(key, now)
	l.groups.touch(h.group, now)
}

// common returns the group of all jobs that a pod had at two looks, or nothing if
// they are of several. If it had none, those before count: a startd's figures may
// come later than the news of its slots.
func (l *Learner) common(before past, after Pod) string {
	jobs := slices.Concat(before.Jobs, after.Jobs)
	if len(jobs) == 0 {
		return before.group
	}
	one := l.group(jobs[0].ID)
	for _, j := range jobs[1:] {
		if l.group(j.ID) != one {
			return ""
		}
	}
	return one
}

// compare learns from what has ended in a pod. If all its jobs are of one group, the
// startd's own figures are exact, and have also jobs that were too short to be seen.
// Otherwise jobs have ended in the middle between both looks.
func (l *Learner) compare(before, after Pod, group string, middle time.Time) {
	jobs, busy := after.Ended-before.Ended, after.Busy-before.Busy
	switch {
	case group != "" && jobs > 0 && busy > 0:
		l.learn(group, busy/time.Duration(jobs), jobs)
		return
	case group != "" && after.Ended > 0:
		return // the figures come in a moment
	}
	for _, j := range before.Jobs {
		if !slices.ContainsFunc(after.Jobs, func(o Job) bool { return o.ID == j.ID }) {
			l.learn(l.group(j.ID), middle.Sub(j.Began), 1)
		}
	}
}

func (l *Learner) learn(group string, ran time.Duration, jobs int) {
	if k := l.groups.find(group); k != nil && ran <= longest {
		k.mean = max(Mean(k.mean, max(ran, time.Second), jobs), time.Second)
	}
}

// drop forgets what nobody has seen for long, and all that is of a clock which has
// been set back.
func (l *Learner) drop(now time.Time) {
	old := func(seen time.Time) bool { return now.Sub(seen) > forget || seen.After(now) }
	l.groups.forget(old)
	l.clusters.forget(old)
}

// Runtime returns how long a job of a group is expected to run; 0 if that is
// unknown. What jobs say of themselves is how long they run at most, so that the
// smaller one counts.
func (l *Learner) Runtime(group string) time.Duration {
	if l.groups.own == nil {
		return 0
	}
	k := l.groups.find(group)
	switch {
	case k == nil:
		return 0
	case k.mean == 0 || k.stated == 0:
		return max(k.mean, k.stated)
	}
	return min(k.mean, k.stated)
}

// Until returns when a job that runs is expected to end; zero if that is unknown.
func (l *Learner) Until(j Job) time.Time {
	if r := l.Runtime(l.group(j.ID)); r > 0 && !j.Began.IsZero() {
		return j.Began.Add(r)
	}
	return time.Time{}
}
