package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"podstarter/classads"
	"podstarter/condor/config"
	"podstarter/condor/java"
	"podstarter/localexec/apptainer"
	"podstarter/payload"
	"podstarter/starter/failure"
	"podstarter/starter/settings"
)

// javaTestTime bounds the test of the machine's Java. The startd does nothing else meanwhile.
const javaTestTime = 30 * time.Second

// errNoJava says that the machine has no Java where JAVA says. Most have none, and that is no mistake.
var errNoJava = errors.New("there is no such program")

// tryJava finds out whether the machine's own Java runs, where jobs run without a pod, and promises the java universe.
func tryJava(ctx context.Context, ad *classads.Ad, set settings.Settings, cfg *config.Config, log *slog.Logger) {
	if set.Backend != settings.BackendLocal {
		return
	}
	switch err := findMachines(ctx, ad, set, cfg, log); {
	case errors.Is(err, errNoJava):
		log.Info("Jobs of the java universe do not run here", "error", failure.OneLine(err))
	case err != nil:
		log.Warn("Jobs of the java universe do not run here", "error", failure.OneLine(err))
	default:
		log.Info("Jobs of the java universe run here by Java " + ad.StringOr("JavaVersion", "of unknown version"))
	}
}

// findMachines tries Java as a job's user: what works for root alone is of no use.
func findMachines(ctx context.Context, ad *classads.Ad, set settings.Settings, cfg *config.Config, log *slog.Logger) error {
	b, err := newLocalBackend(set, log)
	if err != nil {
		return err
	}
	return findJava(ctx, ad, cfg, b.Try)
}

// findJava asks Java for its properties (java_detect.cpp:java_detect).
func findJava(ctx context.Context, ad *classads.Ad, cfg *config.Config, run apptainer.Run) error {
	program, args, err := java.Probe(cfg)
	if err != nil {
		return err
	}
	if _, err := os.Stat(program); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look for the Java that JAVA names: %w: %w", errNoJava, err)
	}
	ctx, cancel := context.WithTimeout(ctx, javaTestTime)
	defer cancel()
	status, output, err := run(ctx, append([]string{program}, args...))
	switch {
	case err != nil:
		return fmt.Errorf("run CondorJavaInfo by %s: %w", program, err)
	case status != 0:
		return fmt.Errorf("run CondorJavaInfo by %s: exit status %d; JAVA_CLASSPATH_DEFAULT must name the directory of HTCondor's CondorJavaInfo.class: %.300q", program, status, output)
	}
	return java.Publish(ad, output)
}

// auditJava says whether jobs of the java universe run.
func auditJava(ctx context.Context, set settings.Settings, cfg *config.Config) []payload.Finding {
	const what = "java universe"
	if set.Backend != settings.BackendLocal {
		return nil
	}
	ad := classads.NewAd()
	switch err := findMachines(ctx, ad, set, cfg, slog.New(slog.DiscardHandler)); {
	case errors.Is(err, errNoJava):
		return []payload.Finding{{Grade: payload.OK, What: what, Detail: "its jobs do not run here: " + failure.OneLine(err)}}
	case err != nil:
		return []payload.Finding{{Grade: payload.Warn, What: what, Detail: "its jobs do not run here: " + failure.OneLine(err), Fix: "JAVA, or JAVA_CLASSPATH_DEFAULT"}}
	}
	return []payload.Finding{{Grade: payload.OK, What: what, Detail: "its jobs run by Java " + ad.StringOr("JavaVersion", "of unknown version")}}
}
