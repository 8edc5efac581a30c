package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"
)

// progress reports what was done and how long it took. Steps may run at the same
// time.
type progress struct {
	mu    sync.Mutex
	w     io.Writer
	start time.Time
}

func newProgress(w io.Writer) *progress { return &progress{w: w, start: time.Now()} }

func (p *progress) print(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, "%7.1f s  %s\n", time.Since(p.start).Seconds(), fmt.Sprintf(format, args...))
}

// step runs f and reports its duration. A long one also reports that it has begun.
func (p *progress) step(ctx context.Context, name string, f func(ctx context.Context) error) error {
	begun := time.Now()
	timer := time.AfterFunc(2*time.Second, func() { p.print("%s …", name) })
	err := f(ctx)
	timer.Stop()
	took := time.Since(begun).Seconds()
	if err != nil {
		if ctx.Err() == nil {
			p.print("%s: failed after %.1f s", name, took)
		}
		return err
	}
	p.print("%s: %.1f s", name, took)
	return nil
}
