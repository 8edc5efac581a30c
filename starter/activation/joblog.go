package activation

import (
	"podstarter/condor/daemonlog"
	"podstarter/condor/job"
)

// openJobLog begins the copy of the log that a job asks for, with +JobStarterDebug
// or starter_log of its submit file, to be kept in its sandbox and to come back
// with its output (HTCondor src/condor_startd.V6/Starter.cpp:execDCStarter, the
// argument -a2). What was said before there was a sandbox is not in it.
func (a *activation) openJobLog() {
	if a.opt.JobLog == "" || a.opt.LogFile == nil {
		return
	}
	base, err := daemonlog.OptionsFor(a.opt.Settings.Config, a.opt.LogSuffix)
	if err != nil {
		a.log.Warn("The job gets no log of its own", "error", err)
		return
	}
	// The path in the argument is where the startd believes the sandbox to be.
	opt := daemonlog.OptionsForJobLog(a.opt.Settings.Config, a.opt.JobLog, base)
	file, err := a.job.Sandbox.CreateFile(job.StarterLogFile, 0o644)
	if err != nil {
		a.log.Warn("The job gets no log of its own", "error", err)
		return
	}
	opt.Path = file.Name()
	a.opt.LogFile.Attach(file, opt)
}

// closeJobLog ends that copy before it is transferred, so that it does not grow
// meanwhile.
func (a *activation) closeJobLog() {
	if a.opt.LogFile == nil {
		return
	}
	if err := a.opt.LogFile.Detach(); err != nil {
		a.log.Warn("Failed to close the job's own log", "error", err)
	}
}
