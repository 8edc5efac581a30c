package simulation

import (
	"slices"
	"time"
)

// Figures are the measures of one run.
type Figures struct {
	PodHours float64
	// CPUHours are those of all pods, and Waste is the part that no job used.
	CPUHours, Waste float64
	// Wait and Wait95 are the mean and the 95th percentile of the time that jobs which
	// can run spent idle.
	Wait, Wait95 time.Duration
	// Starting, Empty and Beside are the parts of Waste: before a pod reports, while
	// no job runs in it, and beside the jobs that run in it. They are taken once a minute.
	Starting, Empty, Beside float64
	Submitted               int // jobs that can run
	Finished                int
	Made                    int
	Withdrawn               int
	Failed                  int // pods that came to nothing
	ForNothing              int // pods made for jobs that match nothing
	// Calls of the API server.
	Creates, Deletes, Lists int
	// Objects are the pods that the API server sent: items of lists, and events.
	Objects int
}

// Sample is what there was at a moment.
type Sample struct {
	Idle     int // jobs that can run
	Pods     int
	PodCPUs  int // of pods that have a node
	BusyCPUs int
}

// measure collects the figures of one run. Nothing counts that happens after the
// end of the measured time.
type measure struct {
	length time.Duration
	f      Figures
	wait   map[int]time.Duration // by job, the time that it was idle
	idle   map[int]time.Duration // by job, since when it is idle
}

func newMeasure(length time.Duration) *measure {
	return &measure{length: length, wait: map[int]time.Duration{}, idle: map[int]time.Duration{}}
}

// part is how much of a time lies before the end.
func (m *measure) part(from, to time.Duration) time.Duration {
	return max(min(to, m.length)-min(from, m.length), 0)
}

func (m *measure) submitted(job int, matches bool, now time.Duration) {
	if matches {
		m.f.Submitted++
		m.wait[job] = 0
		m.idle[job] = now
	}
}

func (m *measure) began(job int, since, now time.Duration, matches bool) {
	if matches {
		m.wait[job] += m.part(since, now)
		delete(m.idle, job)
	}
}

func (m *measure) interrupted(job int, matches bool, now time.Duration) {
	if matches {
		m.idle[job] = now
	}
}

func (m *measure) finished(now time.Duration) {
	if now <= m.length {
		m.f.Finished++
	}
}

// used counts CPUs on which a job ran.
func (m *measure) used(cpus int64, from, to time.Duration) {
	m.f.Waste -= float64(cpus) * m.part(from, to).Hours()
}

// pod counts what a pod had while it had a node.
func (m *measure) pod(cpus int64, from, to time.Duration) {
	hours := m.part(from, to).Hours()
	m.f.PodHours += hours
	m.f.CPUHours += float64(cpus) * hours
	m.f.Waste += float64(cpus) * hours
}

// count adds to a counter, before the end.
func (m *measure) count(now time.Duration, counter *int, n int) {
	if now <= m.length {
		*counter += n
	}
}

// figures sums up at the end.
func (m *measure) figures() Figures {
	f := m.f
	waits := make([]time.Duration, 0, len(m.wait))
	var sum time.Duration
	for job, w := range m.wait {
		if since, idle := m.idle[job]; idle {
			w += m.part(since, m.length)
		}
		waits = append(waits, w)
		sum += w
	}
	if len(waits) > 0 {
		slices.Sort(waits)
		f.Wait = sum / time.Duration(len(waits))
		f.Wait95 = waits[len(waits)*95/100]
	}
	return f
}
