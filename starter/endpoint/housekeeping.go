package endpoint

import (
	"context"
	"errors"
	"syscall"

	"podstarter/internal/cedar"
)

// housekeeping serves what an administrator may ask of any daemon, apart from
// the commands that end it (condor_daemon_core.V6/daemon_core_main.cpp:
// dc_main_init). It does not serve commands that need a session which a client
// gets only by authenticating to the starter.
func (o Options) housekeeping(server *cedar.Server) {
	for _, command := range []int{cedar.DCReconfig, cedar.DCReconfigFull} {
		server.Handle(command, cedar.Administrator, func(ctx context.Context, c *cedar.Call) error {
			if err := nothingElse(c); err != nil {
				return err
			}
			o.signalled(ctx, int(syscall.SIGHUP))
			return nil
		})
	}
	for _, command := range []int{cedar.DCSetPeacefulShutdown, cedar.DCSetForceShutdown} {
		server.Handle(command, cedar.Administrator, func(_ context.Context, c *cedar.Call) error {
			// The command that orders a shutdown says how.
			return nothingElse(c)
		})
	}
}

// nothingElse ends a request that has nothing in it, or nothing that matters.
func nothingElse(c *cedar.Call) error {
	if err := c.Stream.EndOfMessage(); !errors.Is(err, cedar.ErrLeftover) {
		return err
	}
	return nil
}
