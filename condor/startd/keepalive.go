package startd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"time"

	"podstarter/condor/version"
	"podstarter/internal/cedar"
	"podstarter/rescue"
)

// Times of the keep-alive (condor_daemon_core.V6/daemon_keep_alive.cpp).
const (
	defaultHang     = 3600 * time.Second // NOT_RESPONDING_TIMEOUT
	defaultFirst    = 30 * time.Second   // STARTER_FIRST_CHILDALIVE_DELAY
	periodMargin    = 30 * time.Second
	minPeriod       = time.Second
	minAliveTimeout = 60 * time.Second
	aliveTries      = 3
	aliveRetry      = 5 * time.Second
	// hangFuzz is the share of the hang time by which starters differ, so that
	// they do not all call at once.
	hangFuzz = 0.02
)

// KeepAlive regularly tells the startd that the starter is not stuck; otherwise
// the startd kills it. It also watches the startd.
type KeepAlive struct {
	Inheritance *Inheritance
	Config      Knobs
	Log         *slog.Logger

	// Version is our own $CondorVersion$ string; the startd's if empty.
	Version string
	// Own is our own address; that of OwnAddress if empty.
	Own string
	// PID is our own process id as the startd knows it; os.Getpid if 0.
	PID int

	// send stands in for the command in tests.
	send func(ctx context.Context, hang time.Duration) error
}

// Run runs until ctx ends, and then returns nil, or until the startd is gone,
// and then returns an error with [ErrParentGone] in its chain.
func (k *KeepAlive) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	rescue.Go(func() { ended <- watchParent(ctx, k.Inheritance.ParentPID) })
	rescue.Go(func() { k.repeat(ctx) })
	return <-ended
}

// schedule says when to call and what to promise.
type schedule struct {
	hang    time.Duration // the startd kills the starter after so long without a call
	first   time.Duration
	period  time.Duration
	timeout time.Duration
}

// plan reads the knobs; fuzz is a number from -1 to 1.
func (k *KeepAlive) plan(fuzz float64) (schedule, error) {
	var s schedule
	general, err := k.Config.Int("NOT_RESPONDING_TIMEOUT", int64(defaultHang/time.Second))
	hang, e := k.Config.Int("STARTER_NOT_RESPONDING_TIMEOUT", general)
	err = errors.Join(err, e)
	const longest = 10 * 365 * 24 * 3600
	if hang < 1 || hang > longest {
		hang = int64(defaultHang / time.Second)
	}
	s.hang = time.Duration(hang) * time.Second
	s.hang += time.Duration(fuzz * hangFuzz * float64(s.hang)).Truncate(time.Second)
	// A startd before 25.14 starts its timer only with the first call, so that
	// must not come late.
	if version.Of(k.Inheritance.Version()).AtLeast(25, 14, 0) {
		delay, e := k.Config.Int("STARTER_FIRST_CHILDALIVE_DELAY", int64(defaultFirst/time.Second))
		err = errors.Join(err, e)
		s.first = time.Duration(max(0, min(delay, int64(s.hang/time.Second)/3))) * time.Second
	}
	s.period = max(minPeriod, s.hang/3-periodMargin)
	s.timeout = max(minAliveTimeout, s.period/3)
	return s, err
}

func (k *KeepAlive) repeat(ctx context.Context) {
	s, err := k.plan(2*rand.Float64() - 1)
	if err != nil {
		k.Log.Warn("A knob about the keep-alive is not understood, its default holds", "error", err)
	}
	if k.send == nil {
		if k.Inheritance.ParentSession == nil {
			k.Log.Warn("The startd gave no session key (SessionKey in CONDOR_PRIVATE_INHERIT); this starter cannot send keep-alives")
			return
		}
		k.send = k.command(s.timeout)
	}
	timer := time.NewTimer(s.first)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if err := k.call(ctx, s); err != nil && ctx.Err() == nil {
			k.Log.Error("Failed to tell the startd that this starter is alive; it kills starters that seem stuck", "error", err, "limit", s.hang)
		}
		timer.Reset(s.period)
	}
}

// call makes up to aliveTries attempts.
func (k *KeepAlive) call(ctx context.Context, s schedule) error {
	var err error
	for try := range aliveTries {
		if try > 0 {
			timer := time.NewTimer(aliveRetry)
			select {
			case <-ctx.Done():
				timer.Stop()
				return context.Cause(ctx)
			case <-timer.C:
			}
		}
		attempt, cancel := context.WithTimeout(ctx, Network(k.Config).Slow.Of(s.timeout))
		err = k.send(attempt, s.hang)
		cancel()
		if err == nil || errors.Is(err, cedar.ErrSessionUnknown) {
			break // a startd that does not know the session never will
		}
	}
	return err
}

// command returns the function that sends DC_CHILDALIVE.
func (k *KeepAlive) command(timeout time.Duration) func(context.Context, time.Duration) error {
	h := k.Inheritance
	own, pid, version := k.Own, k.PID, k.Version
	if own == "" {
		own = h.OwnAddress(k.Config).String()
	}
	if pid == 0 {
		pid = os.Getpid()
	}
	if version == "" {
		version = h.Version()
	}
	client := &cedar.Client{Version: version, Own: own, Name: "STARTER", Timeout: timeout, Network: Network(k.Config)}
	return func(ctx context.Context, hang time.Duration) error {
		s, err := client.Command(ctx, h.Parent.String(), cedar.DCChildAlive, h.ParentSession)
		if err != nil {
			return fmt.Errorf("keep-alive: %w", err)
		}
		defer s.Close()
		defer s.Cancel(ctx)()
		s.PutInt(int64(pid))
		s.PutInt(int64(hang / time.Second))
		s.PutDouble(0) // share of time spent waiting for the log's lock
		if err := s.EndMessage(); err != nil {
			return fmt.Errorf("keep-alive: %w", err)
		}
		return nil
	}
}
