package activation

import (
	"podstarter/condor/daemonlog"
	"podstarter/condor/job"
	"podstarter/sandbox"
)

// openJobLog begins the copy of the log that a job asks for with +JobStarterDebug
// or starter_log in its submit file. The copy lies in the sandbox and comes back
// with the output (HTCondor src/condor_startd.V6/Starter.cpp:execDCStarter, the
// argument -a2). Lines from before the sandbox are not in it.
func openJobLog(o Options, box *sandbox.Sandbox) {
	if o.JobLog == "" || o.LogFile == nil {
		return
	}
	base, err := daemonlog.OptionsFor(o.Settings.Config, o.LogSuffix)
	if err != nil {
		o.Log.Warn("The job gets no log of its own", "error", err)
		return
	}
	// The path in the argument is where the startd believes the sandbox to be.
	opt := daemonlog.OptionsForJobLog(o.Settings.Config, o.JobLog, base)
	file, err := box.CreateFile(job.StarterLogFile, 0o644)
	if err != nil {
		o.Log.Warn("The job gets no log of its own", "error", err)
		return
	}
	opt.Path = file.Name()
	o.LogFile.Attach(file, opt)
}

// closeJobLog ends that copy before it is transferred, so that it does not grow
// meanwhile.
func closeJobLog(o Options) {
	if o.LogFile == nil {
		return
	}
	if err := o.LogFile.Detach(); err != nil {
		o.Log.Warn("Failed to close the job's own log", "error", err)
	}
}
