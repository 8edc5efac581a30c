package main

import (
	"fmt"
	"log/slog"
	"os"
	"strings"

	"podstarter/condor/config"
	"podstarter/condor/daemonlog"
	"podstarter/starter/settings"
)

// openLog opens $(STARTER_LOG).<slot>, and for a job that asked for it a second
// log in its sandbox.
func openLog(cfg *config.Config, inv invocation) (*daemonlog.Log, error) {
	suffix := inv.logSuffix
	if inv.errand != "" {
		suffix = strings.TrimPrefix(inv.errand, "-")
	}
	if inv.advertise {
		// Where stock puts it (starter_v61_main.cpp:main_pre_dc_init).
		suffix = "testing"
	}
	opt, err := daemonlog.OptionsFor(cfg, suffix)
	if err != nil {
		return nil, err
	}
	if owner, err := settings.CondorOwner(cfg); err != nil {
		return nil, err
	} else if os.Getuid() == 0 {
		opt.Switch, opt.UID, opt.GID = true, owner.UID, owner.GID
	}
	opt.Crash = true
	log, err := daemonlog.Open(opt)
	if err != nil {
		return nil, fmt.Errorf("open the starter's log %s: %w", opt.Path, err)
	}
	return log, nil
}

// logger is the log for the rest of the program.
func logger(log *daemonlog.Log) *slog.Logger { return slog.New(log.Handler()) }
