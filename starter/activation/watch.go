package activation

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/rescue"
	"podstarter/starter/orders"
	"podstarter/starter/payloadrun"
	"podstarter/starter/settings"
	"podstarter/starter/usage"
)

// watch serves the running payload until its main process has ended, and waits
// for the work begun meanwhile: an update that says Running must not come after
// one that says Exited.
func (a *activation) watch(ctx context.Context) error {
	every := a.opt.Settings.Condor.Updates
	a.peers.reports.Promise(every.Longest)
	a.gauges.meter.Begin(a.opt.Settings.Config)
	a.gauges.meter.WatchMemory(a.work.container.Client().Memory(), every.Look)
	a.gauges.size.Calm()
	rest := a.opt.rest()
	exit, err := a.follow(ctx, every, rest)
	a.hearWhy(ctx)
	rest.End()
	a.gauges.meter.EndWatch()
	a.gauges.size.Hurry()
	halt := a.gauges.meter.HaltSoon()
	a.background.Wait()
	halt()
	defer a.gauges.meter.Remark()
	switch {
	case errors.As(err, new(*job.Failure)):
		return err
	case a.work.run.Crowded(exit):
		return a.work.container.TooManyTasks()
	case err != nil:
		return a.work.container.LostUnder(err)
	case exit.Killed != "" && exit.Killed != payload.KilledSweep:
		// The wrapper had to stop: the pod is going away, or somebody stopped
		// the container. Nobody knows how the job would have ended.
		return a.work.container.LostUnder(fmt.Errorf("the wrapper killed the job: %s", exit.Killed))
	}
	a.work.run.Exit = &exit
	a.gauges.meter.End(exit)
	a.log.Info(job.LineExited(a.work.run.Started.PID, a.work.run.Status()))
	a.job.ReadJava(a.work.run)
	return nil
}

// follow serves the running payload. Nothing here may block for long: an order
// to kill has to get through.
func (a *activation) follow(ctx context.Context, every settings.Updates, rest Rest) (payload.Exit, error) {
	client := a.work.container.Client()
	type end struct {
		exit payload.Exit
		err  error
	}
	ended := make(chan end, 1)
	rescue.Go(func() {
		exit, err := client.Wait(ctx)
		ended <- end{exit, err}
	})
	crowd := make(chan struct{}, 1)
	lookAround := func() {
		if !a.gauges.meter.LookIfIdle(ctx, client, a.work.container.Table()) {
			return // another look goes on
		}
		a.tellLoad(ctx)
		if a.opt.Settings.MaxTasks > 0 && a.gauges.meter.Tasks() > a.opt.Settings.MaxTasks {
			select {
			case crowd <- struct{}{}:
			default:
			}
		}
	}

	stocking, stop := context.WithCancel(ctx)
	defer stop()
	a.background.Go(func() { a.backend.Restock(stocking) })
	a.applySuspension(ctx)
	a.background.Go(lookAround) // a job may be over before the first tick
	look := time.NewTicker(every.Look)
	defer look.Stop()
	due := time.NewTimer(every.Initial)
	defer due.Stop()
	hard := a.orders.Hard()
	var cut <-chan struct{} // for a node that was asked to end although the order allowed no delay
	var last *payload.Exit  // of the main process, when sessions outlast it
	for {
		select {
		case e := <-ended:
			if errors.Is(e.err, payload.ErrLost) {
				a.gauges.meter.EndWatch() // the kernel's figures last until the runtime removes the container
				e.err = a.work.container.WhyLost(ctx, e.err)
			}
			e.exit = a.desk.AsVisited(e.exit)
			if e.err != nil || e.exit.Killed != "" || !a.desk.Visited() || a.isCheckpoint(e.exit) {
				return e.exit, e.err
			}
			a.log.Info("The job's main process has ended, and a session of its owner goes on")
			last = &e.exit
		case <-a.desk.Left():
			if last != nil && !a.desk.Visited() {
				return *last, nil
			}
		case err := <-a.work.container.Lost():
			a.gauges.meter.EndWatch()
			return payload.Exit{}, err
		case err := <-a.work.streams.Failure():
			return payload.Exit{}, err
		case n := <-a.work.container.Ending():
			a.orders.TakeDown(ctx, n)
		case <-look.C:
			a.background.Go(lookAround)
		case <-crowd:
			a.work.run.Becomes(payloadrun.Crowded)
			a.killHard(ctx)
		case <-due.C:
			due.Reset(every.Regular)
			a.background.Go(func() {
				a.periodicUpdate(ctx)
				rest.GiveBack() // a job that ends before its first update does not pay for it
			})
		case <-a.peers.side.Back():
			a.background.Go(func() { a.changeUpdate(ctx) })
		case <-a.orders.Suspension():
			a.applySuspension(ctx)
		case <-a.orders.Checkpoints():
			a.askCheckpoint(ctx)
		case how := <-a.orders.Ask():
			a.background.Go(a.desk.EndVisits)
			a.work.container.Suspect()
			if last == nil && a.orders.Allows(orders.Hard) {
				a.killSoftly(ctx, how)
			}
		case <-hard:
			hard = nil
			a.background.Go(a.desk.EndVisits)
			if last == nil {
				a.work.run.Becomes(payloadrun.Ordered)
			}
			if a.job.Info.Node == nil || last != nil {
				a.killHard(ctx)
				continue
			}
			// As stock (parallel_proc.cpp:ShutdownFast). The startd kills this process, and so the node, if it takes too long.
			a.killSoftly(ctx, orders.Vacated)
			uncut, release := a.orders.UntilCut(ctx)
			defer release()
			cut = uncut.Done()
		case <-cut:
			cut = nil
			a.killHard(ctx)
		}
	}
}

// hearWhy learns whether the pod's end is behind a demand of the startd. A job that ends at once ends before the notice of it.
func (a *activation) hearWhy(ctx context.Context) {
	if e := a.orders.Ended(); e == nil || !e.MayBeThePods() {
		return
	}
	if n, doomed := a.work.container.Doom(ctx); doomed {
		a.orders.TakeDown(ctx, n)
	}
}

// tellLoad tells the startd how busy the payload is, unless the startd sees that
// itself: a payload beside the starter is its descendant.
func (a *activation) tellLoad(ctx context.Context) {
	cores, known := a.gauges.meter.Cores()
	if !known || !a.opt.Settings.InPod() {
		return
	}
	err := a.gauges.load.Tell(usage.PercentLoad(cores, a.job.Ad), func(ad *classads.Ad) error { return a.peers.startd.Update(ctx, ad) })
	if err != nil {
		a.log.Debug("Failed to tell the startd the load", "error", err)
	}
}

// pace is how often shadow and startd are told how the job fares.
type pace struct {
	telling sync.Mutex // held while they are told
	rest    time.Time  // no periodic update before this time; guarded by telling
}

// periodicUpdate tells shadow and startd how the job fares. It skips an update while
// another goes on, and as many as needed to spend no more than the configured share of
// the time on them.
func (a *activation) periodicUpdate(ctx context.Context) {
	if !a.pace.telling.TryLock() {
		return
	}
	defer a.pace.telling.Unlock()
	began := time.Now()
	if began.Before(a.pace.rest) {
		return
	}
	a.site.hooks.Update(ctx, a.tellState(ctx))
	every := a.opt.Settings.Condor.Updates
	a.pace.rest = began.Add(min(time.Duration(float64(time.Since(began))/every.Slice), every.Longest))
}

// changeUpdate tells them of a change, after the update that goes on.
func (a *activation) changeUpdate(ctx context.Context) {
	a.pace.telling.Lock()
	defer a.pace.telling.Unlock()
	a.tellState(ctx)
}

// tellState sends an update and returns what it said of the job.
func (a *activation) tellState(ctx context.Context) *classads.Ad {
	a.gauges.meter.Look(ctx, a.work.container.Client(), a.work.container.Table())
	ad := a.account.full(ctx, a.account.state())
	a.account.publishPorts(ad, true)
	said := ad.Clone() // Tell adds what is not for hooks
	a.peers.reports.Tell(ctx, ad)
	return said
}

// applySuspension stops or continues every process of the payload and reports
// it (os_proc.cpp:Suspend, Continue).
func (a *activation) applySuspension(ctx context.Context) {
	want := a.orders.Suspended()
	if want == a.work.suspended.Load() {
		return
	}
	sig, word := syscall.SIGCONT, "Continuing"
	if want {
		sig, word = syscall.SIGSTOP, "Suspending"
	}
	a.log.Info(word + " all jobs.")
	if want && a.job.Info.Node != nil {
		a.log.Info("A node of a parallel job is not suspended: the others would wait for it. It ends") // parallel_proc.cpp:Suspend
		a.orders.End(orders.Demand{})
		// The startd did not ask for an end, so it does not kill a node that ignores its signal.
		a.orders.EndAfter(ctx, a.opt.Settings.Condor.GracefulTimeout, orders.Demand{Reason: "the node did not end in SHUTDOWN_GRACEFUL_TIMEOUT when it was to be suspended", Code: shadow.VacateJobShouldRequeue, Urgency: orders.Cut})
		return
	}
	if err := a.work.container.Client().Signal(ctx, sig, true); err != nil {
		a.log.Error(word+" the job failed", "error", err)
		return
	}
	a.work.suspended.Store(want)
	a.background.Go(func() { a.changeUpdate(ctx) })
}

// killSoftly sends the job's main process the signal that it asked for
// (vanilla_proc.cpp:ShutdownGraceful, os_proc.cpp:Remove, Hold). A stopped job
// could not act on it, so it is continued first.
func (a *activation) killSoftly(ctx context.Context, how orders.Manner) {
	a.work.run.Becomes(payloadrun.Ordered)
	signals := job.SignalsOf(a.job.Ad)
	sig := signals.Soft
	switch {
	case how == orders.Held:
		sig = signals.Hold
		a.reportHold(ctx)
	case how == orders.Removed, signals.RemoveSet:
		sig = signals.Remove
	}
	client := a.work.container.Client()
	if a.work.suspended.Swap(false) {
		if err := client.Signal(ctx, syscall.SIGCONT, true); err != nil {
			a.log.Warn("Failed to continue the suspended job before its end", "error", err)
		}
	}
	a.log.Info(fmt.Sprintf("Sending %s to the job", job.SignalName(sig)))
	if err := client.Signal(ctx, sig, false); err != nil {
		a.log.Warn("The signal did not reach the job, it is killed instead", "error", err)
		a.killHard(ctx)
	}
}

// killHard ends every process of the payload at once.
func (a *activation) killHard(ctx context.Context) {
	a.reportHold(ctx)
	a.work.container.Kill(ctx, &a.background)
}

// reportHold asks the shadow to hold the job, if that was ordered, before the job
// has ended: the startd may kill this process at any time from now on. If the shadow
// does not hear it, the job's end is reported with the reason.
func (a *activation) reportHold(ctx context.Context) {
	e := a.orders.Ended()
	if e == nil || !e.Hold {
		return
	}
	err := a.peers.reports.Hold(ctx, shadow.RemoteError{Message: e.Error(), Code: e.Code, Subcode: e.Subcode, Critical: true})
	if err != nil {
		a.log.Error("Failed to ask the shadow to hold the job", "error", err)
	}
}
