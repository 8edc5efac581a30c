package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"

	"podstarter/condor/config"
	"podstarter/starter/activation"
	"podstarter/starter/failure"
	"podstarter/starter/podgpus"
	"podstarter/starter/settings"
)

// gpusOf is where the GPUs of the pod are that the settings describe.
func gpusOf(set settings.Settings) podgpus.Pod {
	return podgpus.Pod{
		StateDir: set.StateDir(), PublishDir: set.Condor.Lock,
		Containers: set.Containers, WithGPUs: set.GPUs.Containers, Discovery: set.GPUs.Discovery,
	}
}

// findGPUs looks for the GPUs of the pod. The startd asks for a starter's abilities before it
// asks for its resources (condor_startd.V6/startd_main.cpp:main_init), waits for the answer,
// and does so as root. The first time, payload containers may have to be made yet, which takes
// as long as a pull of their image; later a job may run in one that was missing, and the startd
// has other things to do.
func findGPUs(ctx context.Context, set settings.Settings, cfg *config.Config, made *calls, log *slog.Logger) {
	pod := gpusOf(set)
	if len(pod.WithGPUs) == 0 {
		return
	}
	limit := set.BindTimeout
	if pod.Tried() {
		limit = preflightTime
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not found within %s", limit))
	defer cancel()
	backend, err := newPodBackend(ctx, set, cfg, made, log)
	if err == nil {
		err = pod.Find(ctx, backend, log)
	}
	if err != nil {
		log.Error("Not all GPUs of this pod can be offered to jobs", "error", failure.OneLine(err))
	}
}

// printGPUs is `condor_pod_starter -gpus`, which the startd calls as the user condor for its
// inventory. Where jobs run beside the starter, HTCondor's own program takes its place.
func printGPUs(out, problems io.Writer, cfg *config.Config) int {
	set, err := settings.Read(cfg)
	if err == nil && !set.InPod() {
		program := settings.StandardDiscovery(cfg)
		err = syscall.Exec(program, append([]string{program}, settings.DiscoveryArguments(cfg)...), os.Environ())
	} else {
		pod := podgpus.Pod{}
		if err == nil {
			pod = gpusOf(set)
		}
		if bad := pod.Print(out); err == nil {
			err = bad
		}
	}
	if err != nil {
		fmt.Fprintf(problems, "condor_pod_starter -gpus: %s\n", failure.OneLine(err))
		return activation.ExitGeneral
	}
	return activation.ExitNormal
}
