package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"podstarter/condor/config"
	"podstarter/condor/daemonlog"
	"podstarter/starter/settings"
)

// openLog opens $(STARTER_LOG).<slot>, and for a job that asked for it a second
// log in its sandbox.
func openLog(cfg *config.Config, inv invocation) (*daemonlog.Log, error) {
	opt, err := daemonlog.OptionsFor(cfg, inv.fileSuffix())
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

// fileSuffix is what the name of this process's log ends in.
func (inv invocation) fileSuffix() string {
	switch {
	case inv.advertise: // where stock puts it (starter_v61_main.cpp:main_pre_dc_init)
		return "testing"
	case inv.errand != "":
		return strings.TrimPrefix(inv.errand, "-")
	}
	return inv.logSuffix
}

// packagedLogs is LOG in the packages of HTCondor.
const packagedLogs = "/var/log/condor"

// noteUnconfigured writes why the configuration is unknown to the log where the slot's is by
// default, or where the environment puts LOG: the startd does not keep what a starter says
// on stderr, and its own log has only the exit code. env is the environment.
func noteUnconfigured(inv invocation, env []string, cause error) error {
	dir := packagedLogs
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, "_CONDOR_LOG="); ok {
			dir = value
		}
	}
	suffix := inv.fileSuffix()
	name := "StarterLog." + suffix
	switch {
	case inv.local != nil && suffix == "": // a schedd's jobs share one
		name = "StarterLog"
	case suffix == "" || suffix != filepath.Base(suffix):
		return fmt.Errorf("note an error in the starter's log: %q is no part of a file's name", suffix)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("note an error in the starter's log: %w", err)
	}
	opt := daemonlog.Options{Path: filepath.Join(dir, name)}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && os.Getuid() == 0 {
		opt.Switch, opt.UID, opt.GID = true, int(owner.Uid), int(owner.Gid)
	}
	log, err := daemonlog.Open(opt)
	if err != nil {
		return fmt.Errorf("note an error in the starter's log: %w", err)
	}
	defer log.Close()
	logger(log).Error("Cannot take this activation over from the startd", "error", cause)
	return nil
}

// logger is the log for the rest of the program.
func logger(log *daemonlog.Log) *slog.Logger { return slog.New(log.Handler()) }
