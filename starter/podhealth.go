package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"

	"podstarter/condor/config"
	"podstarter/k8sexec"
	"podstarter/starter/activation"
	"podstarter/starter/failure"
	"podstarter/starter/journal"
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
	var made calls
	found, err := podOf(set).Recheck(func() error {
		_, err := preflight(ctx, cfg, &made, log)
		return err
	})
	noteCalls(set, &made, log)
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

// noteCalls counts the calls of an errand to the API server.
func noteCalls(set settings.Settings, made *calls, log *slog.Logger) {
	note(set, journal.Event{Kind: journal.Called, Calls: made.soFar()}, log)
}

func note(set settings.Settings, e journal.Event, log *slog.Logger) {
	if err := (journal.Journal{StateDir: set.StateDir()}).Write(e); err != nil {
		log.Warn("The pod's operator does not hear of this", "error", err)
	}
}

// noteCheck tells the operator what a check of the pod found; nil for nothing to tell.
func noteCheck(set settings.Settings, found error, made map[string]int64, log *slog.Logger) {
	e := journal.Event{Kind: journal.Checked, Calls: made}
	if found != nil {
		e.Reason = failure.OneLine(found)
	}
	note(set, e, log)
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
