package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"podstarter/classads"
	"podstarter/localexec"
	"podstarter/localexec/apptainer"
	"podstarter/starter/failure"
	"podstarter/starter/settings"
)

// tryRuntime finds out whether the machine's own runtime runs images, where jobs run without a pod, and promises that.
func tryRuntime(ctx context.Context, ad *classads.Ad, set settings.Settings, log *slog.Logger) {
	if set.Backend != settings.BackendLocal {
		return
	}
	b, err := newLocalBackend(set, log)
	if err != nil {
		log.Warn("Cannot find out whether images run here", "error", failure.OneLine(err))
		return
	}
	report, err := b.Probe(ctx)
	runtimeAbilities(ad, report, set.Condor.NoNetwork, err)
	switch {
	case errors.Is(err, localexec.ErrNoRuntime):
		log.Info("Jobs with images do not run here", "error", failure.OneLine(err))
	case err != nil || !report.Works():
		log.Warn("Jobs with images do not run here; condor_pod_starter -check says what to do", "error", err, "trouble", report.Trouble)
	default:
		log.Info("Jobs with images run here by " + report.Version)
	}
}

// runtimeAbilities are what a probe allows to promise (starter_v61_main.cpp:printClassAd). The startd puts HasPidNamespaces into
// the slot's ad, where the starters of jobs find it. As in stock, a machine without a runtime is silent, and one whose runtime does
// not work says so.
//
// Without network for jobs, Apptainer fetches nothing for them either.
func runtimeAbilities(ad *classads.Ad, report apptainer.Report, noNetwork bool, err error) {
	if errors.Is(err, localexec.ErrNoRuntime) {
		return
	}
	if report.Version != "" {
		ad.SetString("SingularityVersion", report.Version)
	}
	if report.UserNamespaces != nil {
		ad.SetBool("SingularityUserNamespaces", *report.UserNamespaces)
	}
	if err == nil && !report.Works() {
		err = fmt.Errorf("both SIF and Sandbox tests on startup failed : %s", report.Trouble)
	}
	if err != nil {
		ad.SetBool("HasSingularity", false)
		ad.SetString("SingularityOfflineReason", failure.OneLine(err))
		return
	}
	// A download cannot be tried.
	for _, name := range []string{"HasSingularity", "HasContainer"} {
		ad.SetBool(name, true)
	}
	if !noNetwork {
		ad.SetBool("HasDockerURL", true)
	}
	if report.Sandbox {
		ad.SetBool("HasSandboxImage", true)
	}
	if report.SIF {
		ad.SetBool("HasSIF", true)
	}
	ad.SetBool("HasPidNamespaces", report.PIDNamespaces)
}
