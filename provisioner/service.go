package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"podstarter/provisioner/changes"
	"podstarter/provisioner/explain"
	"podstarter/provisioner/pool"
	"podstarter/provisioner/round"
	"podstarter/provisioner/settings"
	"podstarter/provisioner/status"
	"podstarter/provisioner/template"
)

// election decides which of several provisioners makes pods.
type election interface {
	// Run takes part until ctx ends or lead returns an error, and calls lead while this
	// provisioner is the leader.
	Run(ctx context.Context, lead func(ctx context.Context) error) error
	// Leader returns the leader's name, and whether it is this provisioner's.
	Leader() (name string, mine bool)
	// Until returns until when this provisioner may act.
	Until() time.Time
}

// service is the provisioner that goes on until it is told to end.
type service struct {
	set       settings.Settings
	templates []template.Template
	world     world
	pool      *pool.Pool
	log       *slog.Logger
}

// serve does one round after the other while this provisioner is the leader, and
// tells of it at an address.
func (s service) serve(ctx context.Context, address string) error {
	elect, err := s.world.elect(ctx, s.set, s.templates, s.log)
	if err != nil {
		return err
	}
	board := status.NewBoard(status.Config{
		Name: s.set.Name, Templates: s.names(), Interval: s.set.Interval, Now: time.Now,
		Leader: func() (string, bool) {
			if elect == nil {
				return "", true
			}
			return elect.Leader()
		},
	})
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if address != "" {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if err != nil {
			return fmt.Errorf("serving the status page: %w; -listen names another address", err)
		}
		var served sync.WaitGroup
		defer served.Wait()
		serving, stop := context.WithCancel(context.WithoutCancel(ctx))
		defer stop() // after the last round has ended
		served.Go(func() {
			if err := board.Serve(serving, listener); err != nil {
				cancel(err)
			}
		})
		s.log.Info("The status page is served", "address", listener.Addr().String())
	}
	if elect == nil {
		err = s.lead(ctx, board, nil)
	} else {
		s.log.Info("The provisioner stands by until it has the lease", "lease", s.set.Lease.Name)
		err = elect.Run(ctx, func(ctx context.Context) error { return s.lead(ctx, board, elect) })
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	if ctx.Err() != nil {
		s.log.Info("The provisioner ends; pods that are there stay")
		return nil
	}
	return err
}

// lead does rounds until ctx ends. Each leader looks anew at what is there: what a
// watch of its own had seen before could lack what the last leader made.
func (s service) lead(ctx context.Context, board *status.Board, elect election) error {
	s.log.Info("The provisioner begins to make pods")
	board.Lead()
	defer board.Rest()
	r, err := s.provisioner(ctx, elect, false)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	told := changes.New(s.log)
	for {
		rep := r.Run(ctx)
		told.Round(rep, s.names())
		board.Note(rep)
		select {
		case <-ctx.Done():
			s.log.Info("The provisioner makes no more pods")
			if elect != nil && !time.Now().Before(elect.Until()) {
				return nil // the next one may have begun, and goes on with the offline ads
			}
			if err := end(ctx, r); err != nil {
				// They expire, and no other provisioner is kept waiting for that.
				s.log.Warn("The offline ads stay until they expire", "error", explain.Clean(err.Error()))
			}
			return nil
		case <-time.After(s.set.Interval):
		}
	}
}

// names are the names of the templates.
func (s service) names() []string {
	var names []string
	for _, t := range s.templates {
		names = append(names, t.Name)
	}
	return names
}

// provisioner returns one that knows nothing yet.
func (s service) provisioner(ctx context.Context, elect election, dry bool) (*round.Round, error) {
	p, err := s.world.connect(ctx, s.set, s.templates)
	if err != nil {
		return nil, err
	}
	c := round.Config{
		Prefix: s.set.Name, Templates: s.templates, Limits: s.set.Limits, Policy: s.set.Policy, Runtime: s.set.Runtime, ReportWithin: s.set.ReportWithin, BeginWithin: s.set.BeginWithin,
		DryRun: dry, Now: time.Now, Suffix: suffix, Offline: s.offline(),
	}
	if s.set.Batch != nil {
		c.CallTime = s.set.Batch.CallTime()
	}
	if elect != nil {
		// Much shorter than the time for which the Lease is certain after it was renewed.
		c.CallTime, c.Until = s.set.Lease.Duration/3, elect.Until
	}
	return round.New(c, s.pool, p), nil
}
