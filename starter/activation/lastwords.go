package activation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"podstarter/condor/shadow"
	"podstarter/rescue"
	"podstarter/starter/failure"
	"podstarter/starter/orders"
)

// lastWordsTime bounds the orderly end of an activation after a panic of this
// program: the code that panicked may hold a lock that this end waits for.
const lastWordsTime = 2 * time.Minute

// Run lives one activation: everything between the startd starting this process and
// the process leaving. The result is the exit code of the process.
func Run(ctx context.Context, o Options) int {
	return survive(ctx, o.Log, lastWordsTime, func(failed *failures) (*activation, error) {
		a, err := newActivation(ctx, o)
		if err != nil {
			o.Log.Error("Cannot take this activation over from the startd", "error", err)
			return nil, err
		}
		if o.LogFile != nil {
			o.LogFile.CommandSocket(a.peers.address.String())
		}
		failed.end(a.orders)
		return a, nil
	}, (*activation).run)
}

// survive makes an activation and runs it; the result is the exit code of the
// process. After a panic in any of its goroutines, the stack is logged, the job
// goes back to the queue, and the exit code is ExitException.
func survive(ctx context.Context, log *slog.Logger, limit time.Duration,
	begin func(*failures) (*activation, error), run func(*activation, context.Context) int) (code int) {
	failed := &failures{log: log, limit: limit}
	defer rescue.Handle(failed.add)()
	defer failed.over()
	var a *activation
	defer func() {
		if trouble := recover(); trouble != nil {
			p, told := trouble.(*rescue.Panic)
			if !told {
				p = &rescue.Panic{Value: trouble, Stack: string(debug.Stack())}
				failed.add(p)
			}
			if a != nil {
				a.lastWords(ctx, p.Value)
			}
		}
		if failed.any() && code != ExitLostShadow {
			code = ExitException
		}
	}()
	var err error
	if a, err = begin(failed); err != nil {
		return ExitGeneral
	}
	a.panics = failed
	return run(a, ctx)
}

// failures are the panics of an activation.
type failures struct {
	log   *slog.Logger
	limit time.Duration

	mu      sync.Mutex
	first   *rescue.Panic
	last    *time.Timer    // ends this process
	orders  *orders.Orders // nil until there is an activation
	telling sync.WaitGroup
}

// add takes note of a panic, and orders the end. It does not wait for the log,
// which may be what panicked.
func (f *failures) add(p *rescue.Panic) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first == nil {
		f.first = p
		f.last = time.AfterFunc(f.limit, func() {
			panic(fmt.Sprintf("no orderly end within %s after a panic: %v\n%s", f.limit, p.Value, p.Stack))
		})
	}
	f.telling.Go(func() {
		f.log.Error("Internal error, please report it", "panic", p.Value, "stack", p.Stack)
	})
	f.order()
}

// end takes the orders by which a panic ends the job.
func (f *failures) end(o *orders.Orders) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.orders = o
	f.order()
}

func (f *failures) order() {
	if f.first != nil && f.orders != nil {
		o, why := f.orders, failureText(f.first.Value)
		f.telling.Go(func() { o.End(orders.Demand{Reason: why, Code: shadow.VacateStarterError, Urgency: orders.Cut}) })
	}
}

// any tells whether something has panicked, once the log has it.
func (f *failures) any() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.telling.Wait()
	return f.first != nil
}

// over stops the timer: the end has come in time.
func (f *failures) over() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last != nil {
		f.last.Stop()
	}
}

// failure is what has panicked, as an error; nil if nothing has.
func (f *failures) failure() error {
	if f == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.first == nil {
		return nil
	}
	return failure.New(shadow.VacateStarterError, 0, errors.New(failureText(f.first.Value)))
}

// failureText is what the job's owner reads.
func failureText(trouble any) string { return fmt.Sprintf("the starter failed: %v", trouble) }

// lastWords gives the job back to the queue when this program has failed, and
// removes what is left of it, as far as that still works (HTCondor
// src/condor_starter.V6.1/starter.cpp:ExceptHandler).
func (a *activation) lastWords(ctx context.Context, trouble any) {
	for _, step := range []func(){
		func() {
			a.report(ctx, shadow.RemoteError{Message: failureText(trouble), Code: shadow.VacateStarterError, Critical: true})
		},
		func() {
			a.noteEnd(ExitException)
			a.phase = over // whatever it was
			a.clean(ctx)
		},
	} {
		func() {
			defer func() {
				if again := recover(); again != nil {
					a.log.Error("Failed again while cleaning up after an internal error", "panic", again)
				}
			}()
			step()
		}()
	}
}
