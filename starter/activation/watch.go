package activation

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/rescue"
	"podstarter/starter/failure"
	"podstarter/starter/orders"
	"podstarter/starter/settings"
	"podstarter/starter/usage"
)

// watch goes along with the running payload until its main process has ended,
// and with what was begun meanwhile until that is done: an update that says
// Running must not come after one that says Exited.
func (a *activation) watch(ctx context.Context) error {
	every := a.set.Condor.Updates
	a.reports.Promise(every.Longest)
	a.meter.Begin(a.cfg)
	a.size.Calm()
	exit, err := a.follow(ctx, every)
	a.size.Hurry()
	halt := a.meter.HaltSoon()
	a.background.Wait()
	halt()
	switch {
	case errors.As(err, new(*job.Failure)):
		return err
	case a.crowded(exit):
		return a.tooManyTasks()
	case err != nil:
		return a.lostContainer(err)
	case exit.Killed != "" && exit.Killed != payload.KilledSweep:
		// The wrapper had to leave: the pod is going away, or somebody stopped
		// the container. How the job would have ended is not known.
		return a.lostContainer(fmt.Errorf("the wrapper killed the job: %s", exit.Killed))
	}
	a.payload.exit = &exit
	a.meter.End(exit)
	a.log.Info(job.LineExited(a.payload.started.PID, a.payload.status()))
	return nil
}

// follow serves the running payload. Nothing here may block for long: an order
// to kill has to get through.
func (a *activation) follow(ctx context.Context, every settings.Updates) (payload.Exit, error) {
	client := a.container.Client()
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
		if !a.meter.LookIfIdle(ctx, client, a.table) {
			return // the last has not ended
		}
		a.tellLoad(ctx)
		if a.set.MaxTasks > 0 && a.meter.Tasks() > a.set.MaxTasks {
			select {
			case crowd <- struct{}{}:
			default:
			}
		}
	}

	a.applySuspension(ctx)
	a.background.Go(lookAround) // a job may be over before the first tick
	look := time.NewTicker(every.Look)
	defer look.Stop()
	due := time.NewTimer(every.Initial)
	defer due.Stop()
	hard := a.orders.Hard()
	var last *payload.Exit // of the main process, when sessions outlast it
	for {
		select {
		case e := <-ended:
			if errors.Is(e.err, payload.ErrLost) {
				e.err = a.whyLost(ctx, e.err)
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
		case err := <-a.container.Lost():
			return payload.Exit{}, err
		case err := <-a.streams.failure():
			return payload.Exit{}, err
		case n := <-a.container.Ending():
			a.orders.TakeDown(ctx, n)
		case <-look.C:
			a.background.Go(lookAround)
		case <-crowd:
			a.payload.crowd = true
			a.killHard(ctx)
		case <-due.C:
			due.Reset(every.Regular)
			a.background.Go(func() { a.periodicUpdate(ctx) })
		case <-a.submit.Back():
			a.background.Go(func() { a.changeUpdate(ctx) })
		case <-a.orders.Suspension():
			a.applySuspension(ctx)
		case <-a.orders.Checkpoints():
			a.askCheckpoint(ctx)
		case how := <-a.orders.Ask():
			a.background.Go(a.desk.EndVisits)
			if last == nil && a.orders.Allows(orders.Hard) {
				a.killSoftly(ctx, how)
			}
		case <-hard:
			hard = nil
			a.background.Go(a.desk.EndVisits)
			a.payload.ordered = a.payload.ordered || last == nil
			a.killHard(ctx)
		}
	}
}

// tellLoad tells the startd how busy the payload is, if it cannot see that itself: a
// payload beside the starter is the startd's descendant.
func (a *activation) tellLoad(ctx context.Context) {
	cores, known := a.meter.Cores()
	if !known || !a.set.InPod() {
		return
	}
	err := a.load.Tell(usage.PercentLoad(cores, a.ad), func(ad *classads.Ad) error { return a.startd.Update(ctx, ad) })
	if err != nil {
		a.log.Debug("Failed to tell the startd the load", "error", err)
	}
}

// periodicUpdate tells shadow and startd how the job fares. While one has not
// ended the next is left out, and as many as it takes to spend no more than the
// configured share of the time on them.
func (a *activation) periodicUpdate(ctx context.Context) {
	if !a.periodic.TryLock() {
		return
	}
	defer a.periodic.Unlock()
	began := now()
	if began.Before(a.restUntil) {
		return
	}
	a.updateHook(ctx, a.tellState(ctx))
	a.restUntil = began.Add(min(time.Duration(float64(now().Sub(began))/a.set.Condor.Updates.Slice), a.set.Condor.Updates.Longest))
}

// changeUpdate tells them of a change, after whatever they are being told.
func (a *activation) changeUpdate(ctx context.Context) {
	a.periodic.Lock()
	defer a.periodic.Unlock()
	a.tellState(ctx)
}

// tellState is an update; the answer is what it said of the job.
func (a *activation) tellState(ctx context.Context) *classads.Ad {
	a.meter.Look(ctx, a.container.Client(), a.table)
	ad := a.fullAd(ctx, a.state())
	a.publishPorts(ad, true)
	said := ad.Clone() // without what is for those who are told alone
	a.reports.Tell(ctx, ad)
	return said
}

// lostContainer is what becomes of a job whose container ended under it. What
// it had done is gone with the container's processes; how they ended is not
// known, and unknown is never success.
func (a *activation) lostContainer(err error) error {
	if a.orders.Ended() != nil {
		return errors.Join(orders.ErrEnded, err)
	}
	v := (*payload.Verdict)(nil)
	if errors.As(err, &v) && v.Reason == payload.ReasonOutOfMemory {
		return failure.New(shadow.HoldJobOutOfResources, shadow.OutOfMemory, fmt.Errorf("%s %w", a.meter.Exhausted(a.ad), err))
	}
	return failure.New(shadow.VacateContainerError, 0, fmt.Errorf("the payload container ended under the running job: %w", err))
}

// applySuspension stops or continues every process of the payload and reports
// it (os_proc.cpp:Suspend, Continue).
func (a *activation) applySuspension(ctx context.Context) {
	want := a.orders.Suspended()
	if want == a.suspended.Load() {
		return
	}
	sig, word := syscall.SIGCONT, "Continuing"
	if want {
		sig, word = syscall.SIGSTOP, "Suspending"
	}
	a.log.Info(word + " all jobs.")
	if err := a.container.Client().Signal(ctx, sig, true); err != nil {
		a.log.Error(word+" the job failed", "error", err)
		return
	}
	a.suspended.Store(want)
	a.background.Go(func() { a.changeUpdate(ctx) })
}

// killSoftly sends the job's main process the signal that it asked for
// (vanilla_proc.cpp:ShutdownGraceful, os_proc.cpp:Remove, Hold). A stopped job
// could not act on it, so it is continued first.
func (a *activation) killSoftly(ctx context.Context, how orders.Manner) {
	a.payload.ordered = true
	signals := job.SignalsOf(a.ad)
	sig := signals.Soft
	switch {
	case how == orders.Held:
		sig = signals.Hold
		a.reportHold(ctx)
	case how == orders.Removed, signals.RemoveSet:
		sig = signals.Remove
	}
	client := a.container.Client()
	if a.suspended.Swap(false) {
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

// killHard ends every process of the payload at once. Where the starter sees them, it
// needs nobody for that: the wrapper has no more CPU time than the job leaves it.
func (a *activation) killHard(ctx context.Context) {
	a.reportHold(ctx)
	a.log.Info("Killing the job")
	a.background.Go(func() {
		if err := a.container.Client().Sweep(ctx); err != nil {
			a.log.Error("Failed to kill the job through its wrapper", "error", err)
		}
	})
	if table := a.table; table != nil {
		a.background.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, sweepTime)
			defer cancel()
			if err := table.KillAll(ctx); err != nil {
				a.log.Error("Failed to kill the job", "error", err)
			}
		})
	}
}

// reportHold asks the shadow to hold the job, if that was ordered, before the job
// has ended: the startd may kill this process at any time from now on. If the shadow
// does not hear it, the job's end is reported with the reason.
func (a *activation) reportHold(ctx context.Context) {
	e := a.orders.Ended()
	if e == nil || !e.Hold {
		return
	}
	err := a.reports.Hold(ctx, shadow.RemoteError{Message: e.Error(), Code: e.Code, Subcode: e.Subcode, Critical: true})
	if err != nil {
		a.log.Error("Failed to ask the shadow to hold the job", "error", err)
	}
}

// whyTime bounds the wait for the reason of a container's end. A backend that
// does not know any says so sooner.
const whyTime = 20 * time.Second

// whyLost waits for the backend to find out why the connection to the wrapper
// has ended: that the container was killed for want of memory is another matter
// than that its pod was evicted. Nothing is left to be killed meanwhile.
func (a *activation) whyLost(ctx context.Context, lost error) error {
	timer := time.NewTimer(whyTime)
	defer timer.Stop()
	select {
	case err := <-a.container.Lost():
		return err
	case <-a.orders.Hard():
	case <-timer.C:
	case <-ctx.Done():
	}
	return lost
}
