package conformance

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"podstarter/integration/harness"
	"podstarter/integration/images/probe/facts"
)

// Step is one thing that the test does to a job, or waits for.
type Step struct {
	Words string // what the step is, for messages and as part of names
	do    func(context.Context, *Run) error
	waits bool          // for the job, rather than doing something to it
	about time.Duration // how long it should wait after what was done last
}

// About says that the wait should end about so long after the step before, and not
// earlier. Without About it should end as soon as it does under the other starter.
func (s Step) About(d time.Duration) Step {
	s.about = d
	return s
}

// Do is a case's own step that does something to the job.
func Do(words string, do func(ctx context.Context, r *Run) error) Step {
	return Step{Words: words, do: do}
}

// Wait is a case's own step that waits for something. Its duration is compared.
func Wait(words string, do func(ctx context.Context, r *Run) error) Step {
	return Step{Words: words, do: do, waits: true}
}

// Note is a step whose result is compared, without words that are particular to the
// run.
func Note(name string, look func(ctx context.Context, r *Run) (string, error)) Step {
	return Step{Words: name, do: func(ctx context.Context, r *Run) error {
		text, err := look(ctx, r)
		r.found.Notes[name] = words(text, r.Job())
		return err
	}}
}

// Event waits for the n-th event (from 1) of a kind, such as [harness.EventHeld].
// It fails at once if the job leaves the queue without it.
func Event(number, n int) Step {
	return Wait(fmt.Sprintf("event %03d, number %d", number, n), func(ctx context.Context, r *Run) error {
		for _, job := range r.Jobs {
			seen, left := 0, false
			_, err := job.WaitEvents(ctx, fmt.Sprintf("event %03d", number), func(events []harness.Event) bool {
				seen, left = 0, false
				for _, e := range events {
					if e.Number == number {
						seen++
					}
					left = left || e.Number == harness.EventAborted || e.Number == harness.EventTerminated
				}
				return seen >= n || left
			})
			if err != nil {
				return err
			}
			if seen < n {
				return fmt.Errorf("job %s left the queue without it", job.ID())
			}
		}
		return nil
	})
}

// Executes waits until the job runs for the n-th time (from 1), as its event log
// says.
func Executes(n int) Step { return Event(harness.EventExecute, n) }

// Ends waits until the job ends or is put on hold.
func Ends() Step {
	return Wait("the end", func(ctx context.Context, r *Run) error {
		for _, job := range r.Jobs {
			if _, err := job.WaitEnding(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// Ready waits until the job runs and the probe has reached its step "ready".
func Ready() Step { return Runs(facts.Ready) }

// AllReady waits until all jobs of the cluster run and their probes have reached that step.
func AllReady() Step {
	return Wait("processes "+facts.Ready, func(ctx context.Context, r *Run) error {
		for i := range r.Jobs {
			one := *r
			one.Jobs = r.Jobs[i : i+1]
			if err := Ready().do(ctx, &one); err != nil {
				return err
			}
		}
		return nil
	})
}

// Runs waits until a process of the job's present run has this name in the process
// table. A shell gets it by: printf NAME >/proc/$$/comm.
func Runs(comm string) Step {
	return Wait("process "+comm, func(ctx context.Context, r *Run) error {
		if err := Executes(1).do(ctx, r); err != nil {
			return err
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		go func() {
			if end, err := r.Job().WaitEnding(ctx); err == nil {
				cancel(fmt.Errorf("the job ended before anybody saw it: %s", end))
			}
		}()
		_, err := r.Process(ctx, comm)
		return err
	})
}

// Gone waits until no process of the job is left. It must come after [Runs] or
// [Executes].
func Gone() Step {
	return Wait("no process left", func(ctx context.Context, r *Run) error {
		payload, err := r.payload()
		if err != nil {
			return err
		}
		return harness.WaitNone(ctx, payload)
	})
}

// Until waits until an expression over the job's ad in the queue is true.
func Until(expression string) Step {
	return Wait("until "+expression, func(ctx context.Context, r *Run) error {
		const turn = 500 * time.Millisecond
		for {
			out, err := r.Pool.AP(ctx, "condor_q", r.Job().ID(), "-af", "("+expression+") =?= true")
			if err != nil || strings.TrimSpace(out) == "true" {
				return err
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("waiting until %s: %w", expression, context.Cause(ctx))
			case <-time.After(turn):
			}
		}
	})
}

// Tool runs a tool of HTCondor on the submit side as the job's owner and compares
// output and exit code. In its arguments <job>, <cluster> and <directory> stand for
// the job's number, its cluster's, and the submit directory. Without any of them
// the job's number is the last argument.
func Tool(argv ...string) Step {
	return Do(strings.Join(argv, " "), func(ctx context.Context, r *Run) error {
		args, said := r.arguments(argv)
		if !said {
			args = append(args, r.Job().ID())
		}
		result, err := r.Pool.TryAP(ctx, args...)
		r.told(strings.Join(argv, " "), result)
		return err
	})
}

// Shell runs a script in the submit directory as the job's owner and compares
// output and exit code. It replaces the same words as [Tool].
func Shell(script string) Step {
	return Do(script, func(ctx context.Context, r *Run) error {
		args, _ := r.arguments([]string{script})
		result, err := r.Pool.TryAP(ctx, "sh", "-c", `cd "$0" && eval "$1"`, r.directory(), args[0])
		r.told(script, result)
		return err
	})
}

// EP runs a command in the pilot of the execution point, as root if the pilot has root,
// and compares output and exit code. Besides the words of [Tool], <scratch> stands for the job's
// sandbox and <slot> for its slot.
func EP(argv ...string) Step {
	return Do("in the EP: "+strings.Join(argv, " "), func(ctx context.Context, r *Run) error {
		args, _ := r.arguments(argv)
		result, err := r.Pool.TryPilot(ctx, r.Side, args...)
		r.told("in the EP: "+strings.Join(argv, " "), result)
		return err
	})
}

// Quietly runs a step without comparing what its tool prints.
func Quietly(s Step) Step {
	do := s.do
	s.do = func(ctx context.Context, r *Run) error {
		err := do(ctx, r)
		delete(r.found.Tools, s.Words)
		return err
	}
	return s
}

// told notes what a tool printed.
func (r *Run) told(name string, result harness.Result) {
	text := fmt.Sprintf("exit code %d", result.Code)
	for _, part := range []string{result.Stdout, result.Stderr} {
		if part = strings.TrimSpace(part); part != "" {
			text += "\n" + part
		}
	}
	r.found.Tools[name] = words(text, r.Job())
}

// arguments replaces words that stand for something of the run; said reports
// whether there were any.
func (r *Run) arguments(argv []string) (args []string, said bool) {
	slot, scratch, _ := r.Slot() // empty before the job runs
	replace := strings.NewReplacer(
		"<job>", r.Job().ID(), "<cluster>", strconv.Itoa(r.Job().Cluster), "<directory>", r.directory(),
		"<slot>", slot, "<scratch>", scratch)
	for _, a := range argv {
		replaced := replace.Replace(a)
		said = said || replaced != a
		args = append(args, replaced)
	}
	return args, said
}

// directory is the submit directory as the submit side has it.
func (r *Run) directory() string {
	return r.Pool.User.Home + "/jobs/" + r.Job().Dir[strings.LastIndexByte(r.Job().Dir, '/')+1:]
}
