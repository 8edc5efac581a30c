package main

import (
	"context"
	"math"
	"sync"
	"time"

	"podstarter/classads"
	"podstarter/starter/settings"
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
// what it measures of the starter, whatever the job's universe, and makes of the
// sum CpusUsage and CondorLoadAvg of the slot and what policies see
// (HTCondor src/condor_startd.V6/Starter.cpp:receiveJobClassAdUpdate,
// updateUsage).
const attrLoad = "JobVMCpuUtilization"

// tellLoad tells the startd, and only it, how busy the payload is, if that has
// changed. A payload beside the starter is a descendant.
func (a *activation) tellLoad(ctx context.Context) {
	if a.set.Backend != settings.BackendPod {
		return
	}
	percent, known := a.percentLoad()
	a.told.mu.Lock()
	defer a.told.mu.Unlock()
	if !known || math.Abs(percent-a.told.percent) < 1 {
		return
	}
	ad := classads.NewAd()
	ad.SetReal(attrLoad, percent)
	if err := a.startd.Update(ctx, ad); err != nil {
		a.log.Debug("Failed to tell the startd the load", "error", err)
		return
	}
	a.told.percent = percent
}

// toldLoad is what the startd was told last.
type toldLoad struct {
	mu      sync.Mutex
	percent float64
}

// percentLoad is the load in the unit of attrLoad.
func (a *activation) percentLoad() (percent float64, known bool) {
	cores, known := a.meter.cores()
	cpus := a.ad.IntOr("JobVM_VCPUS", a.ad.IntOr("RequestCpus", 1))
	return 100 * cores / float64(max(1, cpus)), known
}

// publishNoLoad ends what tellLoad told: the startd counts with the last word
// until its starter is gone.
func (a *activation) publishNoLoad(ad *classads.Ad) {
	a.told.mu.Lock()
	defer a.told.mu.Unlock()
	if a.payload != nil && a.payload.exit != nil && a.told.percent != 0 {
		ad.SetReal(attrLoad, 0)
	}
}
