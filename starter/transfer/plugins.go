package transfer

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"podstarter/condor/job"
	"podstarter/condor/plugin"
	"podstarter/rescue"
	"podstarter/sandbox/filetransfer"
	"podstarter/starter/hostprog"
	"podstarter/starter/settings"
)

// urlPlugins lets the sandbox move what URLs name with HTCondor's plugins. It looks
// for them at the first URL.
type urlPlugins struct {
	find   func(context.Context) *plugin.Set
	runner plugin.Runner
	refuse error // why none may be run
	set    *plugin.Set
	made   map[*plugin.Plugin]*urlPlugin
}

// openPlugins gets ready to move what URLs name.
func (f *Files) openPlugins() *urlPlugins {
	knobs := f.Settings.Condor.Transfer
	return &urlPlugins{find: f.findPlugins, refuse: f.Programs.Host.Confinable(), runner: plugin.Runner{
		Exec: f.Programs.RunPlugin, Files: f.Sandbox, Job: f.Job.Clone(), Scratch: f.Sandbox.Scratch(),
		Environ: f.Programs.Environ, Extra: f.pluginSurroundings(), Lifetime: knobs.PluginLifetime, Output: pluginOutput(knobs, f.Log), Log: f.Log,
		KeepErrors: knobs.KeepErrors, PlainData: knobs.PlainData,
	}}
}

// pluginSurroundings are the variables by which plugins find what belongs to the job.
func (f *Files) pluginSurroundings() []string {
	env := []string{
		"_CONDOR_JOB_AD=" + filepath.Join(f.Sandbox.Scratch(), job.JobAdFile),
		"_CONDOR_MACHINE_AD=" + filepath.Join(f.Sandbox.Scratch(), job.MachineAdFile),
	}
	if f.Tokens != "" {
		env = append(env, "_CONDOR_CREDS="+f.Tokens)
	}
	return env
}

// findPlugins finds the plugins for this job.
func (f *Files) findPlugins(ctx context.Context) *plugin.Set {
	set := NewFinder(f.Programs.Host, f.Settings, f.Programs.Environ, f.Log).All(ctx)
	set.AddJob(f.Job, f.userPlugins())
	return set
}

// Finder finds the site's plugins and logs what is wrong with some. The others can be
// used all the same.
type Finder struct {
	plugin.Finder
	noFiles bool  // no URL may name a file of the pilot container
	refuse  error // why none may be run
}

// NewFinder returns a finder that asks plugins about themselves with environ.
func NewFinder(host *hostprog.Host, set settings.Settings, environ []string, log *slog.Logger) Finder {
	return Finder{
		Finder:  plugin.Finder{Config: set.Config, Exec: host.AskPlugin, Env: environ, Cache: plugin.OpenCache(set.StateDir()), Log: log},
		noFiles: !set.SeparateUsers(), refuse: host.Confinable(),
	}
}

// All finds them.
func (f Finder) All(ctx context.Context) *plugin.Set {
	if f.refuse != nil {
		f.Log.Error("No URLs are transferred", "error", f.refuse)
		return plugin.Disabled()
	}
	found, err := f.Find(ctx)
	if err != nil {
		f.Log.Error("No URLs are transferred until a knob is corrected", "error", err)
	}
	for _, problem := range found.Problems() {
		f.Log.Warn(problem.Error())
	}
	if f.noFiles {
		found.Forbid("file")
	}
	return found
}

// userPlugins says what becomes of plugins that the job brings (jic_shadow.cpp:
// initWithFileTransfer).
func (f *Files) userPlugins() plugin.UserPlugins {
	if !f.Settings.SeparateUsers() {
		return plugin.Refuse
	}
	n, err := f.Settings.Config.EvalInt("STARTER_DISABLE_USER_SUPPLIED_TRANSFER_PLUGINS", 0, f.Machine, f.Job)
	switch {
	case err != nil:
		f.Log.Warn("Plugins of jobs are allowed: the knob that could forbid them is not understood", "error", err)
		return plugin.Allow
	case n <= 0:
		return plugin.Allow
	case n == int64(plugin.Ignore):
		return plugin.Ignore
	}
	return plugin.Refuse
}

// For implements filetransfer.Plugins.
func (u *urlPlugins) For(ctx context.Context, url string) (filetransfer.Plugin, *filetransfer.PluginFailure) {
	if u.refuse != nil {
		return nil, &filetransfer.PluginFailure{Text: "FILETRANSFER:1:No URLs are transferred here: " + u.refuse.Error() + " ( URL file = " + plugin.Safe(url) + " )|"}
	}
	if u.set == nil {
		// During a transfer this thread has the job's user's rights to files; what
		// plugins said of themselves is root's.
		found := make(chan *plugin.Set, 1)
		rescue.Go(func() { defer close(found); found <- u.find(ctx) })
		u.set = <-found
		u.runner.Set = u.set
	}
	if u.set.Disabled() {
		return nil, &filetransfer.PluginFailure{Text: "FILETRANSFER:1:URL transfers are disabled by configuration.  Cannot transfer URL file = " + plugin.Safe(url) + " ."}
	}
	p := u.set.Find(url)
	if p == nil {
		return nil, &filetransfer.PluginFailure{Subcode: plugin.SubcodeNotFound,
			Text: fmt.Sprintf("FILETRANSFER:1:FILETRANSFER: plugin for type %s not found! ( URL file = %s )|", plugin.Method(url), plugin.Safe(url))}
	}
	if u.made == nil {
		u.made = map[*plugin.Plugin]*urlPlugin{}
	}
	if u.made[p] == nil {
		u.made[p] = &urlPlugin{p: p, runner: &u.runner}
	}
	return u.made[p], nil
}

// urlPlugin is one of them.
type urlPlugin struct {
	p      *plugin.Plugin
	runner *plugin.Runner
}

// Path implements filetransfer.Plugin.
func (u *urlPlugin) Path() string { return u.p.Path }

// Many implements filetransfer.Plugin.
func (u *urlPlugin) Many() bool { return u.p.Multi }

// Run implements filetransfer.Plugin.
func (u *urlPlugin) Run(ctx context.Context, class filetransfer.PluginClass, files []filetransfer.URLFile, proxy string) (*filetransfer.PluginRun, error) {
	list := make([]plugin.File, len(files))
	for i, f := range files {
		list[i] = plugin.File{URL: f.URL, Path: f.Path}
	}
	began := time.Now()
	r, err := u.runner.Run(ctx, u.p, plugin.Class(class), list, proxy)
	if err != nil {
		return nil, err
	}
	run := &filetransfer.PluginRun{Results: r.Ads, Began: began, Took: r.Took, Said: r.Said(), Unexplained: r.Unexplained}
	if r.Failure != nil {
		run.Failure = &filetransfer.PluginFailure{Subcode: r.Failure.Subcode, TryAgain: r.Failure.TryAgain, Text: r.Failure.Text}
	}
	for _, rep := range r.Reports {
		run.Reports = append(run.Reports, filetransfer.PluginReport{
			URL: rep.URL, FileName: rep.FileName, Judged: rep.Judged, Success: rep.Success, Error: rep.Error,
			Protocol: rep.Protocol, Sized: rep.Sized, Bytes: rep.Bytes, Ad: rep.Ad,
		})
	}
	return run, nil
}
