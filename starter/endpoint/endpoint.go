package endpoint

import (
	"context"
	"fmt"
	"log/slog"
	"net"
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

// Options are what the endpoint serves, and who hears of it.
type Options struct {
	Inherited *startd.Inheritance
	Sessions  *cedar.Sessions
	Version   string // "$CondorVersion: ...$" of this program
	Settings  settings.Settings
	Orders    *orders.Orders
	Reconnect cedar.Handler // of a shadow that wants its job back
	Reversed  cedar.Handler // of a daemon that was asked to connect to this one (CCB); nil if none ever is
	Proxy     cedar.Handler // of a newer X.509 proxy
	// Owner registers the commands of the job's owner.
	Owner func(server *cedar.Server)
	Log   *slog.Logger
}

// Serve serves the starter's command endpoint, takes signals, and keeps the startd
// convinced that this process is alive, all in goroutines that end with ctx.
func Serve(ctx context.Context, o Options) {
	server := &cedar.Server{Sessions: o.Sessions, Version: o.Version, Slow: startd.Network(o.Settings.Config).Slow, Log: o.Log}
	server.Handle(cedar.StarterVacateJob, cedar.Daemon, o.vacate)
	server.Handle(cedar.DCRaiseSignal, cedar.Daemon, o.raise)
	server.Handle(cedar.UpdateGSICred, cedar.Write, o.Proxy)
	server.HandleSpeaking(cedar.DelegateGSICredStarter, cedar.Write, o.Proxy)
	server.Handle(cedar.CACmd, cedar.Write, o.Reconnect)
	if o.Reversed != nil {
		// The command that goes over that connection is what proves who is at its other end.
		server.Handle(cedar.CCBReverseConnect, cedar.Allow, o.Reversed)
	}
	for command, sig := range map[int]int{
		cedar.DCOffGraceful: int(syscall.SIGTERM),
		cedar.DCOffFast:     int(syscall.SIGQUIT),
		cedar.DCOffPeaceful: orders.Peaceful,
		cedar.DCOffForce:    int(syscall.SIGQUIT),
	} {
		server.Handle(command, cedar.Administrator, func(ctx context.Context, c *cedar.Call) error {
			o.signalled(ctx, sig)
			return nil
		})
	}
	o.housekeeping(server)
	o.Owner(server)
	o.keepPayloadOut()
	for _, listener := range []net.Listener{o.Inherited.Listener, o.Inherited.Second} {
		if listener == nil {
			continue
		}
		rescue.Go(func() {
			if err := server.Serve(ctx, listener); err != nil && ctx.Err() == nil {
				o.Log.Error("The command endpoint is closed: only signals can end this job", "address", listener.Addr(), "error", err)
			}
		})
	}

	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGINT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2)
	rescue.Go(func() {
		for {
			select {
			case sig := <-signals:
				o.signalled(ctx, int(sig.(syscall.Signal)))
			case <-ctx.Done():
				// Signals stay caught: the startd may order an end that has
				// come already, and would then see the process die of a signal.
				return
			}
		}
	})

	rescue.Go(func() {
		alive := startd.KeepAlive{Inheritance: o.Inherited, Config: o.Settings.Config, Log: o.Log}
		if err := alive.Run(ctx); err != nil && ctx.Err() == nil {
			// The same as SIGQUIT (daemon_core.cpp:check_parent).
			o.Orders.End(orders.Demand{Reason: fmt.Sprintf("The startd is gone: %v", err), Code: shadow.VacateStarterError, Urgency: orders.Cut})
		}
	})
}

// keepPayloadOut lets only HTCondor's own accounts pass connections on: the
// endpoint's abstract socket is in the network namespace of the pod, where the
// payload sees its name (unix(7), /proc/net/unix).
func (o Options) keepPayloadOut() {
	port, ok := o.Inherited.Listener.(*cedar.SharedPort)
	if !ok {
		return
	}
	trusted := []int{0, os.Getuid()}
	if condor, err := settings.CondorOwner(o.Settings.Config); err == nil {
		trusted = append(trusted, condor.UID)
	}
	port.Refuse = func(uid uint32) bool { return !slices.Contains(trusted, int(uid)) }
}

// vacate is STARTER_VACATE_JOB; it is answered before anything happens
// (starter.cpp:remoteVacateCommand).
func (o Options) vacate(ctx context.Context, c *cedar.Call) error {
	v, err := startd.ReadVacate(c.Stream)
	if err != nil {
		return err
	}
	c.Stream.PutInt(1)
	if err := c.Stream.EndMessage(); err != nil {
		return err
	}
	o.Log.Info(fmt.Sprintf("Got vacate code=%d subcode=%d reason=%s", v.Code, v.Subcode, v.Reason))
	d := orders.Demand{Reason: v.Reason, Code: v.Code, Subcode: v.Subcode, Hold: !v.ShouldVacate(), Source: orders.Startd}
	if v.Soft {
		d.Urgency = orders.Soft
	}
	o.Orders.End(d)
	return nil
}

// raise is DC_RAISESIGNAL.
func (o Options) raise(ctx context.Context, c *cedar.Call) error {
	sig, err := startd.ReadSignal(c.Stream)
	if err != nil {
		return err
	}
	o.signalled(ctx, sig)
	return nil
}

// signalled does what a signal of the kernel or of daemonCore means.
func (o Options) signalled(ctx context.Context, sig int) {
	o.Orders.Signal(ctx, sig, o.Settings.Condor.GracefulTimeout)
}
