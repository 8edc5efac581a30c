package main

import (
	"fmt"
	"io"

	"podstarter/condor/config"
	"podstarter/k8sexec/pilotstop"
	"podstarter/starter/activation"
	"podstarter/starter/failure"
	"podstarter/starter/settings"
)

// pilotStops is `condor_pod_starter -pilot-stops`, the preStop hook of the pilot's container: it lets starters whose payload
// containers are sidecars find out whether the pod ends.
func pilotStops(out io.Writer, cfg *config.Config) int {
	set, err := settings.Read(cfg)
	if err == nil && set.InPod() {
		err = pilotstop.Announce(set.PrivateDir)
	}
	if err != nil {
		fmt.Fprintf(out, "condor_pod_starter -pilot-stops: %s\n", failure.OneLine(err))
		return activation.ExitGeneral
	}
	return activation.ExitNormal
}
