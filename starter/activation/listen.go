package activation

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"podstarter/condor/shadow"
	"podstarter/condor/startd"
	"podstarter/internal/cedar"
	"podstarter/rescue"
	"podstarter/starter/orders"
	"podstarter/starter/settings"
)

// listen serves the starter's command endpoint, takes signals, and keeps the
// startd convinced that this process is alive, all until ctx ends.
func (a *activation) listen(ctx context.Context) {
	server := &cedar.Server{Sessions: a.peers.sessions, Version: a.opt.Version, Log: a.log}
	server.Handle(cedar.StarterVacateJob, cedar.Daemon, a.commandVacate)
	server.Handle(cedar.DCRaiseSignal, cedar.Daemon, a.commandSignal)
	server.Handle(cedar.UpdateGSICred, cedar.Write, a.proxies.Command)
	server.HandleSpeaking(cedar.DelegateGSICredStarter, cedar.Write, a.proxies.Command)
	server.Handle(cedar.CACmd, cedar.Write, a.peers.side.Reconnect)
	for command, sig := range map[int]int{
		cedar.DCOffGraceful: int(syscall.SIGTERM),
		cedar.DCOffFast:     int(syscall.SIGQUIT),
		cedar.DCOffPeaceful: orders.Peaceful,
		cedar.DCOffForce:    int(syscall.SIGQUIT),
	} {
		server.Handle(command, cedar.Administrator, func(ctx context.Context, c *cedar.Call) error {
			a.signalled(ctx, sig)
			return nil
		})
	}
	a.housekeeping(server)
	a.desk.Serve(server)
	a.keepPayloadOut()
	rescue.Go(func() {
		if err := server.Serve(ctx, a.peers.inherited.Listener); err != nil && ctx.Err() == nil {
			a.log.Error("The command endpoint is closed: this job can be ended by signals alone", "error", err)
		}
	})

	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	rescue.Go(func() {
		for {
			select {
			case sig := <-signals:
				a.signalled(ctx, int(sig.(syscall.Signal)))
			case <-ctx.Done():
				// They stay caught: the startd may order an end that has come
				// already, and would then see the process die of a signal.
				return
			}
		}
	})

	rescue.Go(func() { a.peers.side.Keep(ctx) })

	rescue.Go(func() {
		alive := startd.KeepAlive{Inheritance: a.peers.inherited, Config: a.opt.Settings.Config, Log: a.log}
		if err := alive.Run(ctx); err != nil && ctx.Err() == nil {
			// The same as SIGQUIT (daemon_core.cpp:check_parent).
			a.orders.End(orders.Demand{Reason: fmt.Sprintf("The startd is gone: %v", err), Code: shadow.VacateStarterError, Urgency: orders.Cut})
		}
	})
}

// keepPayloadOut lets only HTCondor's own accounts pass connections on: the
// endpoint's abstract socket is in the network namespace of the pod, where the
// payload sees its name (unix(7), /proc/net/unix).
func (a *activation) keepPayloadOut() {
	port, ok := a.peers.inherited.Listener.(*cedar.SharedPort)
	if !ok {
		return
	}
	trusted := []int{0, os.Getuid()}
	if condor, err := settings.CondorOwner(a.opt.Settings.Config); err == nil {
		trusted = append(trusted, condor.UID)
	}
	port.Refuse = func(uid uint32) bool { return !slices.Contains(trusted, int(uid)) }
}

// commandVacate is STARTER_VACATE_JOB; it is answered before anything happens
// (starter.cpp:remoteVacateCommand).
func (a *activation) commandVacate(ctx context.Context, c *cedar.Call) error {
	v, err := startd.ReadVacate(c.Stream)
	if err != nil {
		return err
	}
	c.Stream.PutInt(1)
	if err := c.Stream.EndMessage(); err != nil {
		return err
	}
	d := orders.Demand{Reason: v.Reason, Code: v.Code, Subcode: v.Subcode, Hold: !v.ShouldVacate(), Source: orders.Startd}
	if v.Soft {
		d.Urgency = orders.Soft
	}
	a.orders.End(d)
	return nil
}

// commandSignal is DC_RAISESIGNAL.
func (a *activation) commandSignal(ctx context.Context, c *cedar.Call) error {
	sig, err := startd.ReadSignal(c.Stream)
	if err != nil {
		return err
	}
	a.signalled(ctx, sig)
	return nil
}

// signalled does what a signal of the kernel or of daemonCore means.
func (a *activation) signalled(ctx context.Context, sig int) {
	a.orders.Signal(ctx, sig, a.opt.Settings.Condor.GracefulTimeout)
}
