package hostprog

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"podstarter/condor/plugin"
	"podstarter/sandbox"
	"podstarter/sandbox/confine"
)

// Host is the pilot container as a place to run programs for jobs. Its methods may be
// called from several goroutines.
type Host struct {
	separate       bool
	paths          []string
	configuration  []string
	kernelConfines func() error
	threads        *lesserThreads
}

// Options say what kind of place the pilot container is.
type Options struct {
	// SeparateUsers says that programs run as a user who has nothing in the pilot
	// container; see settings.Settings.SeparateUsers.
	SeparateUsers bool
	// Paths are files and directories that a confined program may read and execute
	// beside the sandbox and the pilot's image (POD_STARTER_PROGRAM_PATHS).
	Paths []string
	// Configuration are the files of HTCondor's configuration, and directories of such
	// files. A confined program may read those that everybody may read.
	Configuration []string
	// KernelConfines is nil if the kernel can confine programs; the default is
	// confine.Supported.
	KernelConfines func() error
}

// New returns the place with these options.
func New(o Options) *Host {
	if o.KernelConfines == nil {
		o.KernelConfines = confine.Supported
	}
	return &Host{
		separate: o.SeparateUsers, paths: o.Paths, configuration: o.Configuration,
		kernelConfines: o.KernelConfines, threads: newLesserThreads(),
	}
}

// Nobody is the user of plugins that are asked about themselves.
func Nobody() sandbox.Owner {
	if os.Getuid() != 0 {
		return sandbox.Self()
	}
	return sandbox.Owner{UID: nobodysGroup, GID: nobodysGroup}
}

// AskPlugin asks a plugin of the site about itself, for no job.
func (h *Host) AskPlugin(ctx context.Context, p plugin.Program) (plugin.Outcome, error) {
	began := time.Now()
	ask := Program{Path: p.Path, Args: p.Args, Env: p.Env, Dir: p.Dir, Limit: p.Limit, As: Nobody(), untrusted: true, threads: h.threads}
	o, err := ask.Run(ctx, p.Combined)
	return outcomeOf(o, began), err
}

// Sandbox is the job's directory.
type Sandbox interface {
	Payload() sandbox.Owner
	Scratch() string
	OpenScratch() (*os.File, error)
	Mkdir(name string, mode fs.FileMode) error
	RemoveTree(ctx context.Context, name string) error
}

// Job is what programs need to know of the job that they run for.
type Job struct {
	Host    *Host
	Sandbox Sandbox
	Name    string   // of the activation, unique in the pod
	Environ []string // the starter's, which may name certificates that the site trusts
	Log     *slog.Logger
}

// User runs what stock runs as the job's user. Without root there is only one.
func (j Job) User() sandbox.Owner {
	if os.Getuid() != 0 {
		return sandbox.Self()
	}
	return j.Sandbox.Payload()
}

// RunPlugin runs a plugin as the job's user, with fewer rights than anybody else in
// the pilot container: in a group of its own, without capabilities, and with no way
// to get any. Where that user is the pilot's own, it is confined. When RunPlugin
// returns, all that the plugin started has ended, and its temporary files are gone.
func (j Job) RunPlugin(ctx context.Context, p plugin.Program) (plugin.Outcome, error) {
	as := j.User()
	left := leftBehind{proc: "/proc", uid: as.UID, gid: pluginGroup}
	env := p.Env
	if !as.Switches() {
		left.uid, left.gid, left.mark = os.Getuid(), -1, pluginMark+"="+j.Name
		env = append(env[:len(env):len(env)], left.mark)
	}
	// An earlier starter that was killed may have left some.
	if err := left.kill(ctx); err != nil {
		return plugin.Outcome{}, err
	}
	env, tidy, err := j.temporary(ctx, env)
	if err != nil {
		return plugin.Outcome{}, err
	}
	run := Program{Path: p.Path, Args: p.Args, Env: env, Dir: p.Dir, Limit: p.Limit, As: as, group: pluginGroup, untrusted: true}
	began := time.Now()
	var o Outcome
	if err = j.Confine(&run); err == nil {
		o, err = run.Run(ctx, p.Combined)
	}
	if e := left.kill(ctx); e != nil && err == nil {
		err = e
	}
	tidy()
	return outcomeOf(o, began), err
}

// Convert runs a program that reads what a job brought and writes something else, both as
// open files: as the job's user, without capabilities and with no way to get any.
func (j Job) Convert(ctx context.Context, p Program) (Outcome, error) {
	p.As, p.untrusted, p.threads = j.User(), true, j.Host.threads
	return p.Run(ctx, false)
}

func outcomeOf(o Outcome, began time.Time) plugin.Outcome {
	return plugin.Outcome{Status: o.Status, Late: o.Late, Output: o.Stdout, Tail: o.Tail, Took: time.Since(began)}
}
