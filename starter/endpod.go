package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"podstarter/condor/config"
	"podstarter/starter/activation"
	"podstarter/starter/failure"
	"podstarter/starter/settings"
)

// endPod is `condor_pod_starter -end-pod`: it asks the cluster to end the pod
// that the pilot runs in, for pilots that have nothing more to do.
func endPod(ctx context.Context, out io.Writer, cfg *config.Config, log *slog.Logger) int {
	set, err := settings.Read(cfg)
	if err == nil && set.Backend != settings.BackendPod {
		err = errors.New("this execution point does not run in a pod (POD_STARTER_BACKEND)")
	}
	if err == nil {
		backend, e := newPodBackend(ctx, set, cfg, &calls{}, log)
		if err = e; err == nil {
			err = backend.EndPod(ctx)
		}
	}
	if err != nil {
		fmt.Fprintf(out, "condor_pod_starter -end-pod: %s\n", failure.OneLine(err))
		return activation.ExitGeneral
	}
	return activation.ExitNormal
}
