package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"time"

	"podstarter/condor/config"
	"podstarter/k8sexec"
	"podstarter/k8sexec/podapi"
	"podstarter/starter/activation"
	"podstarter/starter/failure"
	"podstarter/starter/report"
	"podstarter/starter/settings"
)

// exitNotGranted is the exit code of `-event` if the pilot may not make events
// (sysexits(3), EX_NOPERM).
const exitNotGranted = 77

const (
	eventTime = 10 * time.Second
	maxEvent  = 8 << 10 // bytes of one on standard input
)

// announceInChild makes an event of the pod by a process of its own, like healInChild.
func announceInChild(ctx context.Context, e report.Event) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	text, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("encode an event: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, eventTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, errandEvent)
	cmd.Stdin = bytes.NewReader(text)
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == exitNotGranted {
		return fmt.Errorf("%w: %.500s", report.ErrNotGranted, out)
	}
	if err != nil {
		return fmt.Errorf("%w: %.500s", err, out)
	}
	return nil
}

// announce is `condor_pod_starter -event`: it makes an event of the pod from what it reads.
func announce(ctx context.Context, in io.Reader, out io.Writer, cfg *config.Config, log *slog.Logger) int {
	code, err := makeEvent(ctx, in, cfg, log)
	if err != nil {
		fmt.Fprintln(out, failure.OneLine(err))
	}
	return code
}

func makeEvent(ctx context.Context, in io.Reader, cfg *config.Config, log *slog.Logger) (int, error) {
	text, err := io.ReadAll(io.LimitReader(in, maxEvent))
	if err != nil {
		return activation.ExitGeneral, fmt.Errorf("read the event: %w", err)
	}
	var e report.Event
	if err := json.Unmarshal(text, &e); err != nil {
		return activation.ExitGeneral, fmt.Errorf("read the event: %w", err)
	}
	set, err := settings.Read(cfg)
	if err != nil {
		return activation.ExitGeneral, err
	}
	var made calls
	err = k8sexec.Announce(ctx, podOptions(set, &made, log), podapi.Event{Warning: e.Warning, Reason: e.Reason, Message: e.Message})
	noteCalls(set, &made, log)
	switch {
	case errors.Is(err, k8sexec.ErrNotGranted):
		return exitNotGranted, err
	case err != nil:
		return activation.ExitGeneral, err
	}
	return activation.ExitNormal, nil
}
