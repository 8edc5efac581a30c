package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"podstarter/condor/config"
	"podstarter/k8sexec/pilotstop"
	"podstarter/starter/activation"
	"podstarter/starter/failure"
	"podstarter/starter/settings"
)

// pilotStopsTime is how long the configuration may take then. The kubelet tells the pilot to
// stop when its hook has ended, and the hook's time is part of the pod's grace period, of which
// deploy/glidein has 30 seconds. A slow name service makes the tool take longer.
const pilotStopsTime = 5 * time.Second

var errPilotStops = errors.New("a hook of a pod that ends has no more time")

// pilotStops is `condor_pod_starter -pilot-stops`, the preStop hook of the pilot's container: it lets starters whose payload
// containers are sidecars find out whether the pod ends. If the configuration cannot be had in time, it takes dir for the private
// directory.
func pilotStops(ctx context.Context, out io.Writer, load func(context.Context) (*config.Config, error), within time.Duration, dir string) int {
	ctx, cancel := context.WithTimeoutCause(ctx, within, errPilotStops)
	defer cancel()
	cfg, err := load(ctx)
	var set settings.Settings
	if err == nil {
		set, err = settings.Read(cfg)
	}
	if err == nil {
		if !set.InPod() {
			return activation.ExitNormal
		}
		dir = set.PrivateDir
	}
	if told := pilotstop.Announce(dir); told != nil {
		fmt.Fprintf(out, "condor_pod_starter -pilot-stops: %s\n", failure.OneLine(errors.Join(told, err)))
		return activation.ExitGeneral
	}
	return activation.ExitNormal
}
