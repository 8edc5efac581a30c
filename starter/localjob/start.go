package localjob

import (
	"context"
	"errors"
	"fmt"
	"time"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/condor/userlog"
	"podstarter/payload"
	"podstarter/rescue"
	"podstarter/starter/failure"
	"podstarter/starter/orders"
	"podstarter/starter/payloadrun"
)

// start runs the job's program. If a standard file cannot be opened, no Execute event comes before the hold, as with stock.
func (l *life) start(ctx context.Context) error {
	under := l.wrapper.For(false)
	cmd, spec, err := l.job.Main(l.job.Name, under, nil)
	if err != nil {
		return err
	}
	if err := l.job.Rehearse(ctx, l.container, spec); err != nil {
		return l.notStarted(ctx, err, cmd)
	}
	l.log.Info(job.LineStarting(l.job.Info))
	l.log.Info("IWD: " + spec.Dir)
	l.begin(ctx)
	l.log.Info(job.LineExec(cmd, false))
	// What runs already when an order comes has to be known, or its end would not be told.
	late, release := after(ctx, l.lastPatience)
	defer release()
	started, err := l.container.Start(late, spec)
	if err != nil {
		return l.notStarted(ctx, err, cmd)
	}
	l.run = &payloadrun.Run{Started: started}
	l.log.Info(job.LineStarted(started.PID))
	return nil
}

// after derives a context that ends so long after the other.
func after(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	late, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(d):
			end(context.Cause(ctx))
		case <-late.Done():
		}
	})
	return late, func() {
		stop()
		end(nil)
	}
}

// begin tells that the job begins (jic_local_schedd.cpp:notifyJobPreSpawn).
func (l *life) begin(ctx context.Context) {
	l.write(userlog.Execute{Host: l.address.String()}, false)
	l.begun = true
	if err := l.queue.SetInt(ctx, "NumJobStarts", l.ad.IntOr("NumJobStarts", 0)+1); err != nil {
		l.log.Error("Failed to count the start of the job in the queue", "error", err)
	}
}

// write writes an event, with attributes of the job if it wants that. A log that cannot be written stops nothing.
func (l *life) write(e userlog.Event, inform bool) {
	var about *classads.Ad
	if inform {
		about = l.ad.Clone() // the write may go on
	}
	if err := l.patiently(func() error { return l.events.Write(e, about) }); err != nil {
		l.log.Error("Failed to write to the job's event log", "error", err)
	}
}

// patience is how long the owner's file system may take to answer, once an order allows no delay.
const patience = 10 * time.Second

var errHangs = errors.New("the file system does not answer, and there is no more time")

// patiently does something with files of the owner. Their file system may not answer, be it one of a server or the owner's own
// program: that keeps this process only until an order allows no delay. Nothing else is tried then.
func (l *life) patiently(do func() error) error {
	if l.hangs {
		return errHangs
	}
	done := make(chan error, 1)
	rescue.Go(func() { done <- rescue.Do(do) })
	select {
	case err := <-done:
		return err
	case <-l.orders.Hard():
	}
	timer := time.NewTimer(l.lastPatience)
	defer timer.Stop()
	select {
	case err := <-done:
		return err
	case <-timer.C:
		l.hangs = true
		return errHangs
	}
}

// notStarted says what it means to the job that its process did not start.
func (l *life) notStarted(ctx context.Context, err error, cmd job.Command) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// What the wrapper adds to stock's sentence speaks of a container, and there is none.
	if s := (*payload.StartError)(nil); errors.As(err, &s) && s.Stage == payload.StageExec {
		plain := *s
		plain.Detail, err = "", &plain
	}
	if line := failure.StartLine(err, cmd); line != "" {
		l.log.Info(line)
	}
	return failure.OfStart(err, cmd)
}

// follow serves the running job until its main process has ended.
func (l *life) follow(ctx context.Context) error {
	client := l.container.Client()
	type end struct {
		exit payload.Exit
		err  error
	}
	ended := make(chan end, 1)
	rescue.Go(func() {
		exit, err := client.Wait(ctx)
		ended <- end{exit, err}
	})
	l.meter.Begin(l.opt.Settings.Config)
	lookAround := func() { l.meter.LookIfIdle(ctx, client, nil) }
	l.group.Go(lookAround)
	look := time.NewTicker(l.opt.Settings.Condor.Updates.Look)
	defer look.Stop()
	check := l.ticker()
	defer check.Stop()
	hard := l.orders.Hard()
	for {
		select {
		case e := <-ended:
			halt := l.meter.HaltSoon()
			l.group.Wait()
			halt()
			return l.ended(e.exit, e.err)
		case err := <-l.container.Lost():
			l.group.Wait()
			return l.container.LostUnder(err)
		case <-look.C:
			l.group.Go(lookAround)
		case <-check.C:
			l.evaluate()
		case how := <-l.orders.Ask():
			if l.orders.Allows(orders.Hard) {
				l.killSoftly(ctx, how)
			}
		case <-hard:
			hard = nil
			l.run.Becomes(payloadrun.Ordered)
			l.killHard(ctx)
		}
	}
}

// ended notes how the main process has ended.
func (l *life) ended(exit payload.Exit, err error) error {
	if err != nil {
		return l.container.LostUnder(err)
	}
	if exit.Killed != "" && exit.Killed != payload.KilledSweep {
		return l.container.LostUnder(fmt.Errorf("the wrapper killed the job: %s", exit.Killed))
	}
	l.run.Exit = &exit
	l.meter.End(exit)
	l.log.Info(job.LineExited(l.run.Started.PID, l.run.Status()))
	return nil
}

// killSoftly sends the main process the signal that the job asked for.
func (l *life) killSoftly(ctx context.Context, how orders.Manner) {
	l.run.Becomes(payloadrun.Ordered)
	signals := job.SignalsOf(l.ad)
	sig := signals.Soft
	switch how {
	case orders.Held:
		sig = signals.Hold
	case orders.Removed:
		sig = signals.Remove
	}
	l.log.Info(fmt.Sprintf("Sending %s to the job", job.SignalName(sig)))
	// Not here: the wrapper is in the owner's hands and may not answer, and then the next order counts.
	l.group.Go(func() {
		asked, cancel := context.WithTimeout(ctx, killTime)
		defer cancel()
		if err := l.container.Client().Signal(asked, sig, false); err != nil {
			l.log.Warn("The signal did not reach the job, it is killed instead", "error", err)
			l.sweep(ctx)
		}
	})
}

// killTime is how long the wrapper may take to answer, before it is killed itself.
const killTime = 10 * time.Second

// killHard ends every process of the job at once.
func (l *life) killHard(ctx context.Context) {
	l.log.Info("Killing the job")
	l.group.Go(func() { l.sweep(ctx) })
}

// sweep has the wrapper end every process of the job, or ends the wrapper.
func (l *life) sweep(ctx context.Context) {
	swept, cancel := context.WithTimeout(ctx, killTime)
	defer cancel()
	err := l.container.Client().Sweep(swept)
	if err == nil {
		return
	}
	l.released.Do(func() {
		l.log.Error("Failed to kill the job through its wrapper, which is ended", "error", err)
		if err := l.lease.Release(context.WithoutCancel(ctx)); err != nil && !errors.Is(err, context.Canceled) {
			l.log.Error("Failed to end the wrapper", "error", err)
		}
	})
}
