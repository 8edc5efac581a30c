package main

import (
	"context"
	"os"

	"podstarter/condor/config"
	"podstarter/condor/daemonlog"
	"podstarter/payload"
	"podstarter/starter/activation"
	"podstarter/starter/settings"
	"podstarter/starter/standin"
)

// runFetched runs a job that the startd has fetched itself, and gives the exit code of the process.
func runFetched(ctx context.Context, inv invocation, cfg *config.Config, env []string, file *daemonlog.Log) int {
	log := logger(file)
	set, err := settings.Read(cfg)
	if err != nil {
		log.Error("Cannot take this job over from the startd", "error", err)
		return activation.ExitGeneral
	}
	log.Info("Starter running a local job with no shadow")
	instead, err := standin.New(standin.Options{Input: os.Stdin, Settings: set, Log: log})
	if err != nil {
		log.Error("The job that the startd has fetched cannot be run", "error", err)
		return activation.ExitGeneral
	}
	o := activationOf(inv, cfg, env, set, file)
	backend := o.NewBackend
	o.NewBackend = func(ctx context.Context) (payload.Backend, error) {
		b, err := backend(ctx)
		if err != nil {
			return nil, err
		}
		return instead.Backend(b), nil
	}
	o.Inherit, o.Alone = instead.Inherit, true
	code := activation.Run(ctx, o)
	instead.Wait()
	return code
}
