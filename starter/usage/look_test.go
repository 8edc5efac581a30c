package usage

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"

	"podstarter/condor/config"
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
	m := NewMeter(Knobs{}, slog.New(slog.DiscardHandler))
	go m.LookIfIdle(t.Context(), w, nil)
	<-w.asked
	for range 60 {
		if m.LookIfIdle(t.Context(), w, nil) {
			t.Fatal("a second look beside the first")
		}
	}
	seen := make(chan int)
	go func() {
		m.Look(t.Context(), w, nil)
		seen <- reading(m).Usage.Processes
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
	m := NewMeter(Knobs{}, slog.New(slog.DiscardHandler))
	done := make(chan bool)
	go func() { done <- m.LookIfIdle(context.Background(), w, nil) }()
	<-w.asked
	m.HaltSoon()()
	<-done
	m.Look(context.Background(), w, nil)
	if n := w.times.Load(); n != 1 {
		t.Errorf("%d questions", n)
	}
}

// answering is a wrapper that has its answer at hand.
type answering payload.ContainerUsage

func (a answering) Usage(context.Context) (payload.ContainerUsage, error) {
	return payload.ContainerUsage(a), nil
}

// TestBegin: another run of the job is looked at again, and its statistics go on.
func TestBegin(t *testing.T) {
	m := NewMeter(Knobs{}, slog.New(slog.DiscardHandler))
	m.Begin(config.FromMap(nil))
	first := reading(m).Statistics
	if first == nil {
		t.Fatal("no statistics")
	}
	m.HaltSoon()()
	m.NextRun()
	m.Begin(config.FromMap(nil))
	m.Look(t.Context(), answering{Processes: 3, Threads: 5}, nil)
	if n := m.Tasks(); n != 5 {
		t.Errorf("%d processes and threads were seen", n)
	}
	if reading(m).Statistics != first {
		t.Error("the statistics begin anew")
	}
}
