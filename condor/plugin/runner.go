package plugin

import (
	"context"
	"log/slog"
	"time"

	"podstarter/classads"
)

// DefaultLifetime is MAX_FILE_TRANSFER_PLUGIN_LIFETIME's default.
const DefaultLifetime = 72000 * time.Second

// Runner runs the plugins of one job.
type Runner struct {
	Set   *Set
	Exec  Exec
	Files Files

	Job     *classads.Ad // source of PluginData and the job's environment
	Scratch string       // the sandbox, as plugins see it
	// Environ is the starter's own environment, without secrets; Extra describes
	// the job's place in it: _CONDOR_CREDS, _CONDOR_JOB_AD, _CONDOR_MACHINE_AD.
	Environ, Extra []string

	Lifetime time.Duration // of a run; 0 means DefaultLifetime
	// KeepErrors captures a plugin's standard error with its standard output
	// (REDIRECT_FILETRANSFER_PLUGIN_STDERR_TO_STDOUT).
	KeepErrors bool
	// PlainData gives PluginData to plugins of protocol 2
	// (ASSUME_COMPATIBLE_MULTIFILE_PLUGINS).
	PlainData bool
	// Output logs what plugins wrote, in one line of at most 16 KiB and some words;
	// nil logs nothing.
	Output func(success bool, line string)
	Hosts  string // file of host names; empty means /etc/hosts
	Log    *slog.Logger
}

// Run moves files with one plugin, all in one run; a plugin of protocol 1 takes
// exactly one file. proxy is the path of the job's X.509 proxy, "" if there is
// none. If ctx ends first the error is its cause; every other problem is a Failure
// in the result.
func (r *Runner) Run(ctx context.Context, p *Plugin, class Class, files []File, proxy string) (*Result, error) {
	return r.again(ctx, p, class, func() (*Result, error) {
		if p.Multi {
			return r.many(ctx, p, class, files, proxy)
		}
		return r.one(ctx, p, class, files[0], proxy)
	})
}
