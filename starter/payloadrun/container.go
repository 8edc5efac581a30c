package payloadrun

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"time"

	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/payload/proctable"
	"podstarter/rescue"
	"podstarter/starter/failure"
	"podstarter/starter/orders"
	"podstarter/starter/settings"
)

// Options are what a [Container] works with.
type Options struct {
	UID, GID int // the payload's
	MaxTasks int // POD_STARTER_MAX_PROCESSES
	// NoNetwork takes the network away from all that is started here for the job: the site's
	// programs as well, which may run what the image has.
	NoNetwork bool
	Orders    *orders.Orders
	// Started is called when something was started, or was not by the job's own
	// fault.
	Started func()
	// OutOfMemory is what it means to the job that it ran out of memory, with the container or
	// without; limit is the container's as the backend knows it, in bytes, 0 if it does not.
	OutOfMemory func(limit int64, cause error) error
	// KernelKilled says whether the container's control group shows that the kernel killed
	// processes of the present run for want of memory.
	KernelKilled func() bool
	Log          *slog.Logger
}

// Container is the payload container of this job. The phases of the job use it, one
// after the other, except for [Container.Kill].
type Container struct {
	payload.Container
	Options
	mounts    *payload.Mounts  // for all that is started; nil for none
	table     *proctable.Table // the payload's processes; nil where the starter does not see them
	occupancy occupancy
}

// occupancy is what is known of the payload's processes.
type occupancy int

const (
	unknown occupancy = iota // something may be alive
	vacant                   // nothing is: a sweep has proven it
)

// NewContainer takes over a container that was bound.
func NewContainer(c payload.Container, o Options) *Container {
	k := &Container{Container: c, Options: o}
	k.openTable()
	return k
}

// openTable lets the starter see the payload's processes itself, if it can.
func (c *Container) openTable() {
	w := c.Client()
	seen := w.SeenPID()
	if seen == 0 {
		c.Log.Info("This pod shares no PID namespace; only the wrapper measures and signals the payload")
		return
	}
	table, err := proctable.New(proctable.Options{UID: c.UID, GID: c.GID, Wrapper: seen})
	if err != nil {
		c.Log.Warn("Cannot look at the payload's processes; only the wrapper sees them", "error", err)
		return
	}
	c.table = table
}

// Table is the starter's own table of the payload's processes; nil where it does not see
// them.
func (c *Container) Table() *proctable.Table {
	if c == nil {
		return nil
	}
	return c.table
}

// NextRun prepares for another run of the job, whose processes are counted anew.
func (c *Container) NextRun() {
	if c.table != nil {
		c.table.Close()
		c.table = nil
		c.openTable()
	}
}

// Close closes the process table.
func (c *Container) Close() {
	if c != nil && c.table != nil {
		c.table.Close()
	}
}

// Start starts something in the container.
func (c *Container) Start(ctx context.Context, spec payload.Spec, files ...*os.File) (payload.Started, error) {
	c.occupancy = unknown
	c.Client().Memory().Begin()
	spec.NoNetwork = spec.NoNetwork || c.NoNetwork
	spec.Mounts = c.mounts
	started, err := c.Client().Start(ctx, spec, files...)
	if err != nil && spec.NoNetwork {
		err = c.withoutNetwork(err)
	}
	if err == nil || errors.As(err, new(*payload.StartError)) {
		c.Started()
	}
	return started, err
}

// Run runs a program in the container to its end. If ctx ends first, the program is
// killed with all that it started.
func (c *Container) Run(ctx context.Context, spec payload.Spec) (payload.Exit, int, error) {
	w := c.Client()
	started, err := c.Start(ctx, spec)
	if err != nil {
		return payload.Exit{}, 0, c.failed(ctx, err)
	}
	exit, err := w.Wait(ctx)
	switch {
	case err != nil:
		// A wrapper in the hands of the job's owner may never answer.
		swept, cancel := context.WithTimeout(context.WithoutCancel(ctx), sweepTime)
		defer cancel()
		if sweepErr := w.Sweep(swept); sweepErr != nil && ctx.Err() != nil {
			c.Log.Error("Failed to kill what ran in the payload container", "error", sweepErr)
		}
		return exit, started.PID, c.failed(ctx, err)
	case exit.Killed == payload.KilledTasks:
		return exit, started.PID, c.TooManyTasks()
	case exit.Killed != "":
		return exit, started.PID, c.LostUnder(fmt.Errorf("the wrapper killed it: %s", exit.Killed))
	}
	return exit, started.PID, nil
}

// failed says what it means to the job that a program did not run to its end.
func (c *Container) failed(ctx context.Context, err error) error {
	switch {
	case errors.As(err, new(*payload.StartError)), errors.As(err, new(*job.Failure)):
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, new(*payload.RequestError)):
		return failure.New(shadow.VacateContainerError, 0, fmt.Errorf("failed to start a program in the job's container: %w", err))
	default:
		return c.LostUnder(c.WhyLost(ctx, err))
	}
}

// sweepTime bounds the killing of what is left of a payload. SIGKILL takes milliseconds;
// a process that survives it hangs in the kernel.
const sweepTime = 10 * time.Second

// Sweep kills what is left of the payload and proves that nothing survived. A nil
// container has nothing.
func (c *Container) Sweep(ctx context.Context) error {
	if c == nil || c.occupancy == vacant {
		return nil
	}
	if c.table != nil {
		// What the job has left may take all CPU time from the wrapper.
		if err := c.table.Strike(ctx); err != nil {
			c.Log.Warn("Failed to kill what is left of the job at once", "error", err)
		}
	}
	err := c.Client().Sweep(ctx)
	if c.table != nil {
		// The starter's own look decides: the wrapper may be gone.
		ctx, cancel := context.WithTimeout(ctx, sweepTime)
		defer cancel()
		if left := c.table.KillAll(ctx); left != nil || !errors.Is(err, payload.ErrLost) {
			err = errors.Join(err, left)
		} else {
			err = nil
		}
	}
	if err == nil {
		c.occupancy = vacant
	}
	return err
}

// Vacant says whether a sweep has proven that nothing of the job is alive.
func (c *Container) Vacant() bool { return c != nil && c.occupancy == vacant }

// Kill ends every process of the payload at once, in goroutines of the group. Where the
// starter sees the processes it also kills them itself: the job may leave the wrapper
// no CPU time.
func (c *Container) Kill(ctx context.Context, group *rescue.Group) {
	c.Log.Info("Killing the job")
	group.Go(func() {
		if err := c.Client().Sweep(ctx); err != nil {
			c.Log.Error("Failed to kill the job through its wrapper", "error", err)
		}
	})
	if table := c.table; table != nil {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, sweepTime)
			defer cancel()
			if err := table.KillAll(ctx); err != nil {
				c.Log.Error("Failed to kill the job", "error", err)
			}
		})
	}
}

// whyTime bounds the wait for the reason of a container's end. A backend that knows
// none says so sooner.
const whyTime = 20 * time.Second

// WhyLost waits for the backend to find out why the connection to the wrapper has ended:
// the job is held if its container ran out of memory, but not if its pod was evicted. No
// process is left to be killed meanwhile.
func (c *Container) WhyLost(ctx context.Context, lost error) error {
	timer := time.NewTimer(whyTime)
	defer timer.Stop()
	select {
	case err := <-c.Lost():
		return err
	case <-c.Orders.Hard():
	case <-timer.C:
	case <-ctx.Done():
	}
	return lost
}

// LostUnder is the error of a job whose container ended under it. Its work is gone with
// the container's processes; nobody knows how they ended, and unknown is never success.
func (c *Container) LostUnder(err error) error {
	if c.Orders.Ended() != nil {
		return errors.Join(orders.ErrEnded, err)
	}
	if limit, is := c.outOfMemory(err); is {
		return c.OutOfMemory(limit, err)
	}
	return failure.New(shadow.VacateContainerError, 0, fmt.Errorf("the payload container ended under the running job: %w", err))
}

// outOfMemory says whether a container ended for want of memory, and its limit if the backend
// knows that. The pod's status may lack the reason, since the container's end can overtake
// the kernel's report; then the control group decides. It does not decide against a status
// that knows another reason.
func (c *Container) outOfMemory(err error) (limit int64, is bool) {
	v := (*payload.Verdict)(nil)
	switch {
	case !errors.As(err, &v):
		return 0, errors.Is(err, payload.ErrLost) && c.KernelKilled()
	case v.Reason == payload.ReasonOutOfMemory:
		return v.MemoryLimit, true
	default:
		return v.MemoryLimit, v.Reason == payload.ReasonContainerEnd && c.KernelKilled()
	}
}

// TooManyTasks is the hold of a job that was killed for its number of processes. The
// subcode is fork(2)'s errno at a limit.
func (c *Container) TooManyTasks() error {
	return failure.New(shadow.HoldJobOutOfResources, int(syscall.EAGAIN), fmt.Errorf(
		"the job had more than %d processes and threads at a time, and was killed: no more are allowed here (%s). "+
			"Many libraries start as many threads as the machine has cores; OMP_NUM_THREADS and the like make it fewer",
		c.MaxTasks, settings.KnobMaxProcesses.Name))
}
