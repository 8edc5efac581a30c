// Package rescue handles panics of goroutines before the Go runtime ends the
// process: its exit code would mislead whoever started the process, and nobody
// would have been told.
//
// Every goroutine of a program that must report its own end starts through this
// package. What cannot be caught, such as a fatal error of the runtime or a panic
// in a library's goroutine, is left to [runtime/debug.SetCrashOutput].
package rescue

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Panic is a panic that ended a goroutine's work.
type Panic struct {
	Value any
	Stack string // of the goroutine at the panic
}

// Error implements error.
func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

var handler atomic.Pointer[func(*Panic)]

// Handle makes f get all panics of the process. f must not block: what waits for
// the goroutine that panicked continues only when f has returned. restore brings
// back the previous handler. Without a handler, a panic ends the process as if
// this package did not exist.
func Handle(f func(*Panic)) (restore func()) {
	before := handler.Swap(&f)
	return func() { handler.Store(before) }
}

// Go runs f in a goroutine of its own.
func Go(f func()) {
	go run(f)
}

func run(f func()) {
	defer func() {
		if told := handler.Load(); told != nil {
			if v := recover(); v != nil {
				_ = tell(*told, v)
			}
		}
	}()
	f()
}

// Do runs f in this goroutine, for callers that pass its result on to another one.
// A panic of f is reported to the handler, and is its error then.
func Do(f func() error) (err error) {
	defer func() {
		if told := handler.Load(); told != nil {
			if v := recover(); v != nil {
				err = tell(*told, v)
			}
		}
	}()
	return f()
}

func tell(told func(*Panic), v any) *Panic {
	p, again := v.(*Panic)
	if !again { // else it was reported already, and now panics in its waiter
		p = &Panic{Value: v, Stack: string(debug.Stack())}
		told(p)
	}
	return p
}

// Group is a [sync.WaitGroup] of goroutines like [Go]'s. The zero value is ready.
type Group struct{ running sync.WaitGroup }

// Go runs f in a goroutine of its own.
func (g *Group) Go(f func()) { g.running.Go(func() { run(f) }) }

// Wait waits until all have ended.
func (g *Group) Wait() { g.running.Wait() }
