package conformance

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"podstarter/integration/harness"
)

// maxUsers bounds the user IDs of payloads, which are numbered from the first
// slot's on: what a pool may have of slots and spares (integration/pool/images.go).
const maxUsers = 48

// payload keeps the processes of the job's present run: those that were started
// with its sandbox in their environment.
func (r *Run) payload() (func(harness.Process) bool, error) {
	_, scratch, err := r.Slot()
	if err != nil {
		return nil, err
	}
	users := r.Pool.Payloads(r.Side, maxUsers)
	variable := "_CONDOR_SCRATCH_DIR=" + scratch
	return func(q harness.Process) bool {
		if !users(q) {
			return false
		}
		env, err := q.Env()
		return err == nil && slices.Contains(env, variable) // else it has gone meanwhile
	}, nil
}

// Process waits for a process of the job's present run by its name.
func (r *Run) Process(ctx context.Context, comm string) (harness.Process, error) {
	payload, err := r.payload()
	if err != nil {
		return harness.Process{}, err
	}
	some, err := harness.WaitSome(ctx, 1, func(q harness.Process) bool { return q.Comm == comm && payload(q) })
	if err != nil {
		return harness.Process{}, fmt.Errorf("process %s of job %s: %w", comm, r.Job().ID(), err)
	}
	return some[0], nil
}

// Starter is the starter that runs the job.
func (r *Run) Starter() (harness.Process, error) {
	slot, _, err := r.Slot()
	if err != nil {
		return harness.Process{}, err
	}
	starters := r.Pool.Starters(r.Side)
	return harness.One("starter of "+slot, func(q harness.Process) bool { return slices.Contains(q.Args, slot) && starters(q) })
}

// Startd is the startd of the execution point.
func (r *Run) Startd() (harness.Process, error) {
	inside := r.Pool.Inside(r.Side)
	return harness.One("startd", func(q harness.Process) bool { return q.Comm == "condor_startd" && inside(q) })
}

// Shadow is the job's present shadow.
func (r *Run) Shadow() (harness.Process, error) { return r.Job().Shadow() }

// Kill sends a signal to the process that find returns, such as (*Run).Shadow.
func Kill(who string, find func(*Run) (harness.Process, error), signal unix.Signal) Step {
	return Do(fmt.Sprintf("%s gets signal %d", who, signal), func(_ context.Context, r *Run) error {
		process, err := find(r)
		if err != nil {
			return err
		}
		return harness.Kill(process, signal)
	})
}

// KillPayload sends a signal to the process of the job that has this name.
func KillPayload(comm string, signal unix.Signal) Step {
	return Do(fmt.Sprintf("the job's %s gets signal %d", comm, signal), func(ctx context.Context, r *Run) error {
		process, err := r.Process(ctx, comm)
		if err != nil {
			return err
		}
		return harness.Kill(process, signal)
	})
}
