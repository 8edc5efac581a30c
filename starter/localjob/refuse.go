package localjob

import (
	"fmt"

	"podstarter/condor/image"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/starter/failure"
)

// refuse holds a job that asks for what this starter does not do for jobs of the local universe: to run it without would
// be worse.
func (l *life) refuse() error {
	hold := func(what, instead string) error {
		return failure.New(shadow.HoldFailedToCreateProcess, 0, fmt.Errorf("the starter of this access point's local universe (condor_pod_starter) %s; %s", what, instead))
	}
	if u := l.job.Info.Universe; u != job.Local {
		return failure.New(shadow.HoldFailedToCreateProcess, 0, fmt.Errorf("the job is one of universe %s, and a schedd's own starter runs only jobs of universe LOCAL", u))
	}
	if image.AsksForContainer(l.ad) || l.ad.BoolOr("WantDocker", false) {
		return hold("runs no containers", "submit the job without an image, or in another universe")
	}
	if names, asked := job.Services(l.ad); asked && len(names) > 0 {
		return hold("brings no OAuth tokens to a job", "submit the job without use_oauth_services, or in another universe")
	}
	if n := l.ad.IntOr("JobNotification", 0); n != 0 {
		return hold("sends no mail", "submit the job with notification = never")
	}
	h, err := job.ReadHooks(l.ad, l.opt.Settings.Config)
	if err != nil {
		return failure.New(shadow.VacateStarterError, 0, fmt.Errorf("the hooks of keyword %q cannot be used: %w", h.Keyword, err))
	}
	if h.Keyword == "" {
		return nil
	}
	for _, hook := range []job.Hook{job.HookPrepareJob, job.HookUpdateJobInfo, job.HookJobExit} {
		if _, has := h.Path(hook); has {
			return hold(fmt.Sprintf("runs no hooks, and the job has those of keyword %q", h.Keyword), "submit it without HookKeyword, or ask the administrator of the access point")
		}
	}
	return nil
}

