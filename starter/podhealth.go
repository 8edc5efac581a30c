package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"

	"golang.org/x/sys/unix"

	"podstarter/condor/config"
	"podstarter/k8sexec"
	"podstarter/starter/activation"
	"podstarter/starter/failure"
	"podstarter/starter/podhealth"
	"podstarter/starter/settings"
)

// podOf is the pod that the settings describe.
func podOf(set settings.Settings) podhealth.Pod {
	p := podhealth.Pod{StateDir: set.StateDir(), PublishDir: set.Condor.Lock, LongestRest: set.MaxRest}
	if set.InPod() && set.AdvertisedImages > 0 {
		p.WarmImages = func() ([]string, error) { return k8sexec.WarmImages(set.PrivateDir, set.AdvertisedImages) }
	}
	return p
}

// The compiler checks that no knob allows more than podhealth accepts from a
// file. An image has up to three names.
const (
	_ = uint64(podhealth.MaxRest - settings.MaxMaxRest)
	_ = uint64(podhealth.MaxImages - 3*settings.MaxAdvertisedImages)
)

// keep is `condor_pod_starter -keep`, a daemon of the condor_master: it looks
// after the pod between jobs, with the rights that the startd's cron jobs lack.
func keep(ctx context.Context, cfg *config.Config, log *slog.Logger) int {
	ctx, stop := signal.NotifyContext(ctx, unix.SIGTERM, unix.SIGQUIT, unix.SIGINT)
	defer stop()
	set, err := settings.Read(cfg)
	if err == nil && !set.InPod() {
		_, err = newBackend(ctx, set, cfg, log) // which makes the directory that is watched
	}
	if err == nil {
		err = podhealth.Keep(ctx, podOf(set), healInChild, log)
	}
	if err != nil {
		log.Error("Cannot look after the pod", "error", failure.OneLine(err))
		return activation.ExitGeneral
	}
	return activation.ExitNormal
}

// healInChild runs a check in a process of its own, so that the memory which a
// client of the API server takes is free again afterwards.
func healInChild(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	out, err := exec.CommandContext(ctx, program, "-heal").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %.500s", err, out)
	}
	return nil
}

// heal is `condor_pod_starter -heal`: it checks a sick pod once, and lets it take
// jobs again if the check finds nothing although an earlier one did.
func heal(ctx context.Context, out io.Writer, cfg *config.Config, log *slog.Logger) int {
	set, err := settings.Read(cfg)
	if err != nil {
		fmt.Fprintln(out, failure.OneLine(err))
		return activation.ExitGeneral
	}
	found, err := podOf(set).Recheck(func() error {
		_, err := preflight(ctx, cfg, log)
		return err
	})
	if err != nil {
		fmt.Fprintln(out, err)
	}
	if found != nil {
		fmt.Fprintln(out, failure.OneLine(found))
	}
	if err != nil || found != nil {
		return activation.ExitGeneral
	}
	return activation.ExitNormal
}

// monitor is `condor_pod_starter -monitor`, a STARTD_CRON job in the mode
// WaitForExit.
func monitor(cfg *config.Config) int {
	complain := func(err error) { fmt.Fprintf(os.Stderr, "condor_pod_starter -monitor: %v\n", err) }
	if err := podhealth.Monitor(cfg.String("LOCK", os.TempDir()), os.Stdout, complain); err != nil {
		complain(err)
		return activation.ExitGeneral
	}
	return activation.ExitNormal
}
