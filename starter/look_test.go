package main

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"

	"podstarter/payload"
)

// slowWrapper answers when it is told to.
type slowWrapper struct {
	asked  chan struct{}
	answer chan payload.ContainerUsage
	times  atomic.Int32
}

func (w *slowWrapper) Usage(ctx context.Context) (payload.ContainerUsage, error) {
	w.times.Add(1)
	w.asked <- struct{}{}
	select {
	case u := <-w.answer:
		return u, nil
	case <-ctx.Done():
		return payload.ContainerUsage{}, context.Cause(ctx)
	}
}

// TestOneLookAtATime: a look that takes longer than the pause between two is not
// followed by another before its end, and who needs to know gets what it sees.
func TestOneLookAtATime(t *testing.T) {
	w := &slowWrapper{asked: make(chan struct{}, 100), answer: make(chan payload.ContainerUsage)}
	m := &meter{log: slog.New(slog.DiscardHandler), memory: noMemory()}
	go m.lookIfIdle(t.Context(), w, nil)
	<-w.asked
	for range 60 {
		if m.lookIfIdle(t.Context(), w, nil) {
			t.Fatal("a second look beside the first")
		}
	}
	seen := make(chan int)
	go func() {
		m.look(t.Context(), w, nil)
		seen <- m.usage().Processes
	}()
	w.answer <- payload.ContainerUsage{Processes: 7}
	select {
	case n := <-seen:
		if n != 7 {
			t.Errorf("%d processes were seen", n)
		}
	case <-w.asked: // it came after the first had ended
		w.answer <- payload.ContainerUsage{Processes: 7}
		<-seen
	}
	if n := w.times.Load(); n > 2 {
		t.Errorf("%d questions", n)
	}
}

// TestLooksEndWithTheJob: a look that goes on is no reason to wait, and none begins.
func TestLooksEndWithTheJob(t *testing.T) {
	w := &slowWrapper{asked: make(chan struct{}, 100), answer: make(chan payload.ContainerUsage)}
	m := &meter{log: slog.New(slog.DiscardHandler), memory: noMemory()}
	done := make(chan bool)
	go func() { done <- m.lookIfIdle(context.Background(), w, nil) }()
	<-w.asked
	m.halt()
	<-done
	m.look(context.Background(), w, nil)
	if n := w.times.Load(); n != 1 {
		t.Errorf("%d questions", n)
	}
}
