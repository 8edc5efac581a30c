// Package rescue keeps a panic of one goroutine from ending the process in the
// Go runtime's own way, with an exit code that means something else to those who
// started it and before anybody has been told.
//
// Every goroutine of a program that has last words to say is started through
// this package. What nobody can catch, such as a fatal error of the runtime or a
// panic in a goroutine of a library, is left to [runtime/debug.SetCrashOutput].
package rescue

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Panic is the end of one goroutine's work by a panic.
type Panic struct {
	Value any
	Stack string // of the goroutine, as it panicked
}

// Error implements error.
func (p *Panic) Error() string { return fmt.Sprintf("panic: %v", p.Value) }

var handler atomic.Pointer[func(*Panic)]

// Handle has panics told to f, which must not block: what waits for the goroutine
// that panicked goes on only when f has returned. It is for the whole process, as
// the death by a panic is. The result restores what was before. As long as there
// is no f, a panic ends the process as if this package were not there.
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

// Do runs f here, for those who hand its result on to another goroutine. A panic
// of f is told, and is its error then.
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
	if !again { // else it has been told, and panics on in who waited for it
		p = &Panic{Value: v, Stack: string(debug.Stack())}
		told(p)
	}
	return p
}

// Group is a [sync.WaitGroup] of such goroutines. The zero value is ready for use.
type Group struct{ running sync.WaitGroup }

// Go runs f in a goroutine of its own.
func (g *Group) Go(f func()) { g.running.Go(func() { run(f) }) }

// Wait waits until all have ended.
func (g *Group) Wait() { g.running.Wait() }
