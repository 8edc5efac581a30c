package usage

import (
	"math"
	"sync"
	"time"

	"podstarter/classads"
)

// load is how much CPU the payload uses, from one look to the next.
type load struct {
	at    time.Time
	cpu   time.Duration
	cores float64
	known bool
}

// leastLoadTime is how far apart two looks must be for a rate: CPU time is
// counted in ticks of 10 ms.
const leastLoadTime = time.Second

// see adds one look: all CPU time so far.
func (l *load) see(at time.Time, cpu time.Duration) {
	switch passed := at.Sub(l.at); {
	case l.at.IsZero():
		l.at, l.cpu = at, cpu
	case passed >= leastLoadTime:
		l.cores, l.known = max(0, (cpu-l.cpu).Seconds()/passed.Seconds()), true
		l.at, l.cpu = at, cpu
	}
}

// attrLoad is how the startd learns of CPU use by processes that are not its
// descendants, in percent of the CPUs that the job asked for: it adds them to
// what it measures of the starter, whatever the job's universe. From the sum it
// computes the slot's CpusUsage and CondorLoadAvg and what policies see
// (HTCondor src/condor_startd.V6/Starter.cpp:receiveJobClassAdUpdate,
// updateUsage).
const attrLoad = "JobVMCpuUtilization"

// PercentLoad is the load of so many busy CPUs in the unit that the startd is told:
// percent of the CPUs that the job asked for in its ad.
func PercentLoad(cores float64, ad *classads.Ad) float64 {
	cpus := ad.IntOr("JobVM_VCPUS", ad.IntOr("RequestCpus", 1))
	return 100 * cores / float64(max(1, cpus))
}

// LoadReport keeps what the startd knows of the payload's load, so that it is told
// of changes only. The zero value is a startd that was told nothing. Its methods may
// be called from several goroutines.
type LoadReport struct {
	mu      sync.Mutex // held while the startd is told
	percent float64    // what it was told last; guarded by mu
}

// Tell gives update an ad with the load, only for the startd, if the load differs by
// a percent from what the startd knows. The error is that of update; the startd then
// knows what it knew before.
func (r *LoadReport) Tell(percent float64, update func(*classads.Ad) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if math.Abs(percent-r.percent) < 1 {
		return nil
	}
	ad := classads.NewAd()
	ad.SetReal(attrLoad, percent)
	if err := update(ad); err != nil {
		return err
	}
	r.percent = percent
	return nil
}

// AddEnd adds to an ad for the startd that the ended payload causes no more load:
// the startd uses the last report until its starter is gone.
func (r *LoadReport) AddEnd(ad *classads.Ad) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.percent != 0 {
		ad.SetReal(attrLoad, 0)
	}
}
