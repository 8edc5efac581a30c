package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"podstarter/condor/config"
	"podstarter/internal/buildinfo"
	"podstarter/k8sexec/pilotstop"
	"podstarter/rescue"
	"podstarter/starter/activation"
	"podstarter/starter/failure"
	"podstarter/starter/podhealth"
	"podstarter/starter/report"
	"podstarter/starter/settings"
)

// keep is `condor_pod_starter -keep`, a daemon of the condor_master: it looks after the pod
// between jobs, with the rights that the startd's cron jobs lack, and tells its operator what
// happens in it. The first signal ends it when the last job has ended, the second at once.
func keep(ctx context.Context, cfg *config.Config, log *slog.Logger) int {
	ctx, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	stop, stopped := context.WithCancel(ctx)
	defer stopped()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, unix.SIGTERM, unix.SIGQUIT, unix.SIGINT, unix.SIGHUP)
	rescue.Go(func() {
		for _, end := range []func(){stopped, func() { cut(nil) }} {
			select {
			case s := <-signals:
				if s == unix.SIGHUP {
					end = func() { cut(errReconfig) }
				}
				end()
			case <-ctx.Done():
				return
			}
		}
	})
	set, err := settings.Read(cfg)
	if err != nil {
		report.SayOnce(cfg.String(settings.KnobPrivateDir.Name, settings.KnobPrivateDir.Default), "pod takes no jobs until its configuration is corrected", err)
	}
	if err == nil && !set.InPod() {
		_, err = newBackend(ctx, set, cfg, &calls{}, log) // which makes the directory that is watched
	}
	if err == nil && set.InPod() {
		if withdrawn := pilotstop.Withdraw(set.PrivateDir); withdrawn != nil {
			log.Warn("Jobs in sidecars may be asked in vain whether their pod ends", "error", withdrawn)
		}
	}
	if err == nil {
		log.Info("Looking after the pod between jobs")
		err = keepAndReport(ctx, stop, set, log)
	}
	if err == nil && errors.Is(context.Cause(ctx), errReconfig) {
		err = startAgain()
	}
	if err != nil {
		log.Error("Cannot look after the pod", "error", failure.OneLine(err))
		return activation.ExitGeneral
	}
	return activation.ExitNormal
}

// errReconfig is the end of a keeper whose configuration may have changed: condor_reconfig makes the
// master send SIGHUP to each of its daemons (masterDaemon.cpp:Daemons::ReconfigAllDaemons).
var errReconfig = errors.New("the configuration is to be read again")

// startAgain begins this program anew in this process, which the master then need not start.
func startAgain() error {
	program, err := os.Executable()
	if err == nil {
		err = unix.Exec(program, os.Args, os.Environ())
	}
	return fmt.Errorf("start again to read the configuration: %w", err)
}

// keepAndReport keeps the pod until stop ends, and reports until the last job has ended.
func keepAndReport(ctx, stop context.Context, set settings.Settings, log *slog.Logger) error {
	o := report.Options{
		StateDir: set.StateDir(), Format: set.EventLog, Slots: set.ForSlots(), Version: buildinfo.Version(),
		Pod: fmt.Sprintf("%s/%s", set.PodNamespace, set.PodName), Condor: set.Config.String("CONDOR_VERSION", "unknown"), Log: log,
	}
	if set.MetricsAddress != "" {
		o.PublishDir = set.Condor.Lock
	}
	if set.PodEvents && set.InPod() {
		o.Announce = announceInChild
	}
	reporter, err := report.New(o)
	if err != nil {
		return err
	}
	defer reporter.Close()
	health := make(chan podhealth.Condition, 1)
	var reporting rescue.Group
	reporting.Go(func() {
		if err := reporter.Run(ctx, stop, health); err != nil {
			log.Error("The pod's operator hears nothing more", "error", failure.OneLine(err))
		}
	})
	defer reporting.Wait()
	return podhealth.Keep(stop, podOf(set), healInChild, func(c podhealth.Condition) {
		select { // only the latest counts
		case <-health:
		default:
		}
		health <- c
	}, log)
}
