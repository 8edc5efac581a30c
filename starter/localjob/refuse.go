package localjob

import (
	"fmt"

	"podstarter/classads"
	"podstarter/condor/image"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/starter/failure"
)

// wish is something that the stock starter does for such a job, and this one does not.
type wish struct {
	wanted        func(*classads.Ad) bool
	what, instead string
}

func isTrue(name string) func(*classads.Ad) bool {
	return func(ad *classads.Ad) bool { return ad.BoolOr(name, false) }
}

func isSet(name string) func(*classads.Ad) bool {
	return func(ad *classads.Ad) bool { return ad.StringOr(name, "") != "" || ad.IntOr(name, 0) != 0 }
}

var wishes = []wish{
	{func(ad *classads.Ad) bool { return image.AsksForContainer(ad) || ad.BoolOr("WantDocker", false) }, "runs no containers", "submit the job without an image, or in another universe"},
	{func(ad *classads.Ad) bool { names, asked := job.Services(ad); return asked && len(names) > 0 }, "brings no OAuth tokens to a job", "submit the job without use_oauth_services, or in another universe"},
	{isSet("JobNotification"), "sends no mail", "submit the job with notification = never"},
	{isSet("ToolDaemonCmd"), "starts no tool beside a job", "leave tool_daemon_cmd out, and start the tool in the job's own script"},
	{isTrue("SuspendJobAtExec"), "would never wake the job", "leave suspend_job_at_exec out"},
	{isTrue("UseParrot"), "starts no Parrot", "leave +UseParrot out, and start Parrot in the job's own script"},
	{isSet("StarterWaitForDebug"), "waits for no debugger", "leave +StarterWaitForDebug out"},
	{isTrue("EncryptExecuteDirectory"), "encrypts no directory", "leave encrypt_execute_directory out"},
}

// refuse holds a job that asks for what this starter does not do for jobs of the local universe: to run it without would
// be worse.
func (l *life) refuse() error {
	hold := func(what, instead string) error {
		return failure.New(shadow.HoldFailedToCreateProcess, 0, fmt.Errorf("the starter of this access point's local universe (condor_pod_starter) %s; %s", what, instead))
	}
	if u := l.job.Info.Universe; u != job.Local {
		return failure.New(shadow.HoldFailedToCreateProcess, 0, fmt.Errorf("the job is one of universe %s, and a schedd's own starter runs only jobs of universe LOCAL", u))
	}
	for _, w := range wishes {
		if w.wanted(l.ad) {
			return hold(w.what, w.instead)
		}
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
