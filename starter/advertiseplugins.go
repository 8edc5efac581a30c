package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/condor/plugin"
	"podstarter/sandbox"
	"podstarter/starter/hostprog"
	"podstarter/starter/settings"
	"podstarter/starter/transfer"
)

// pluginTestTime bounds the test of a method. The startd does nothing else meanwhile.
const pluginTestTime = 30 * time.Second

// urlAbilities are the promises about URLs. It asks all plugins anew: an
// administrator who changed one reconfigures the execution point, which leads here.
func urlAbilities(ctx context.Context, ad *classads.Ad, host *hostprog.Host, set settings.Settings, cfg *config.Config, environ []string, log *slog.Logger) {
	finder := transfer.NewFinder(host, set, environ, log)
	finder.Fresh = true
	finder.Test = func(ctx context.Context, p *plugin.Plugin, method string) error {
		url, ok := cfg.Lookup(method + "_TEST_URL")
		if !ok {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, pluginTestTime)
		defer cancel()
		err := testPlugin(ctx, host, p, url, cfg, environ, log)
		if err == nil {
			log.Info("Successfully downloaded test URL " + plugin.Safe(url) + " using plugin " + p.Path)
		}
		return err
	}
	found := finder.All(ctx)
	jobs := !found.Disabled() && set.SeparateUsers()
	if jobs {
		ad.SetBool("HasJobTransferPlugins", true)
	}
	if text, ok := cfg.Lookup("STARTER_DISABLE_USER_SUPPLIED_TRANSFER_PLUGINS"); ok {
		if err := ad.SetExpr("HasDisableUserTransferPlugins", strings.TrimSpace(text)); err != nil {
			log.Warn("HasDisableUserTransferPlugins cannot be advertised", "error", err)
		}
	}
	if !jobs && !found.Disabled() {
		ad.SetBool("HasDisableUserTransferPlugins", true)
	}
	for _, name := range found.Publish(ad) {
		log.Warn("An attribute of a plugin cannot be published", "name", name)
	}
}

// testPlugin fetches a URL into a directory that is made for it.
func testPlugin(ctx context.Context, host *hostprog.Host, p *plugin.Plugin, url string, cfg *config.Config, environ []string, log *slog.Logger) error {
	box, err := sandbox.Create(ctx, sandbox.Options{
		Execute: cfg.String("EXECUTE", ""), PID: os.Getpid(), Condor: sandbox.Self(), Payload: hostprog.Nobody(), Log: log,
	})
	if err != nil {
		return err
	}
	defer func() {
		if err := box.Remove(context.WithoutCancel(ctx)); err != nil {
			log.Warn("Failed to remove the directory of a plugin's test", "error", err)
		}
	}()
	runner := plugin.Runner{
		Exec: host.AskPlugin, Files: box, Job: classads.NewAd(), Scratch: box.Scratch(), Environ: environ, Lifetime: pluginTestTime, Log: log,
	}
	r, err := runner.Run(ctx, p, plugin.Input, []plugin.File{{URL: url, Path: filepath.Join(box.Scratch(), "test_file")}}, "")
	if err == nil && r.Failure != nil {
		err = r.Failure
	}
	if err != nil {
		return fmt.Errorf("test URL %s: %w", plugin.Safe(url), err)
	}
	return nil
}
