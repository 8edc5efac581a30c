package activation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/starter/failure"
	"podstarter/starter/payloadrun"
)

// start runs the job's program in the bound container. The shadow hears of it before it
// happens, as it does from stock: if the program is not executable, an Execute event
// precedes the hold, and if a standard file cannot be opened, none does.
func (a *activation) start(ctx context.Context) error {
	if err := a.clearUser(ctx); err != nil {
		return err
	}
	first := a.work.runs == 0
	if first { // after a checkpoint all is as it was
		if err := a.job.MakeUnderScratch(a.work.container); err != nil {
			return err
		}
		if err := a.site.places.SetUp(ctx, a.sitePrograms(), a.work.container); err != nil {
			return err
		}
		if err := a.preScript(ctx); err != nil {
			return err
		}
	}
	if err := a.job.MeetRuntime(ctx, a.work.container); err != nil {
		return err
	}
	under := a.site.wrapper.For(!a.image.Default())
	cmd, spec, err := a.job.Main(a.job.RunName(a.work.runs), under, a.work.container.PlatformEnv())
	if err != nil {
		return err
	}
	if err := a.job.Rehearse(ctx, a.work.container, spec); err != nil {
		return a.notStarted(ctx, err, cmd, under != "")
	}
	if first {
		if err := a.job.TestImage(ctx, a.work.container); err != nil {
			return err
		}
	}
	a.work.inventory.Environment(a.job.Shown)
	files, err := a.openStreams(ctx, &spec)
	if err != nil {
		return err
	}
	if increment := a.opt.Settings.Condor.Renice; increment.Set {
		// As stock, for hooks to see (os_proc.cpp:StartJob). A value that is not an
		// expression was logged.
		_ = a.job.Ad.SetExpr("Renice", increment.Value)
	}
	a.desk.Ready(a.job.Ad, a.job.Machine, a.job.Sandbox)
	if first {
		a.log.Info(job.LineStarting(a.job.Info))
	}
	a.logPlace(spec)
	if err := a.peers.shadow.BeginExecution(context.WithoutCancel(ctx)); err != nil {
		// The first update that says Running does as well.
		a.log.Warn("Failed to tell the shadow that the job begins", "error", err)
	}
	line := job.LineExec(cmd, a.image.Docker)
	if under != "" {
		line = job.LineWrapped(cmd)
	}
	if a.job.Contained != nil {
		a.log.Info("Running job via singularity.")
	}
	a.log.Info(line)
	started, err := a.work.container.Start(ctx, spec, files...)
	if a.job.Unpacked.LacksShell(err) {
		a.log.Warn("The image has no shell, so the job does not get its environment")
		a.job.Unpacked.NoShell = true
		var bare payload.Spec
		if cmd, bare, err = a.job.Main(spec.Activation, under, a.work.container.PlatformEnv()); err != nil {
			return err
		}
		spec.Path, spec.Args, spec.Env, spec.SearchPath = bare.Path, bare.Args, bare.Env, bare.SearchPath
		started, err = a.work.container.Start(ctx, spec, files...)
	}
	if err != nil {
		return a.notStarted(ctx, err, cmd, under != "")
	}
	a.work.streams.Begin()
	a.work.run = &payloadrun.Run{Started: started}
	a.work.runs++
	a.work.suspended.Store(false) // a new process is not
	shown := spec
	if k := a.job.Contained; k != nil {
		shown.Env = k.Inside()
		a.desk.Through(k.Enter)
	}
	a.desk.Started(a.work.container.Client(), shown, len(a.job.ImageEnv), started.PID)
	a.log.Info(job.LineStarted(started.PID))
	return nil
}

// logPlace logs where the process runs, and with which files (os_proc.cpp:StartJob).
func (a *activation) logPlace(spec payload.Spec) {
	a.log.Info("IWD: " + spec.Dir)
	for _, file := range []struct{ name, path string }{
		{payload.Stdin, spec.Stdin}, {payload.Stdout, spec.Stdout}, {payload.Stderr, spec.Stderr},
	} {
		if file.path == "" || file.path == os.DevNull || slices.Contains(spec.Passed, file.name) {
			continue
		}
		if !filepath.IsAbs(file.path) {
			file.path = filepath.Join(spec.Dir, file.path)
		}
		a.log.Info(job.LineStdFile(file.name, file.path))
	}
}

// notStarted says what it means to the job that its main process did not start.
func (a *activation) notStarted(ctx context.Context, err error, cmd job.Command, wrapped bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if line := failure.StartLine(err, cmd); line != "" {
		if a.job.Contained != nil {
			a.log.Info("Running job via singularity.")
		}
		a.log.Info(line)
	}
	if s := (*payload.StartError)(nil); !wrapped && a.job.Contained != nil && errors.As(err, &s) && s.Stage == payload.StageExec {
		return failure.New(shadow.VacateContainerError, 0, fmt.Errorf("SINGULARITY is %s, which cannot be executed: %w", cmd.Path, err))
	}
	if f := a.job.NoJava(err, cmd); f != nil && !wrapped {
		return f
	}
	if s := (*payload.StartError)(nil); wrapped && errors.As(err, &s) && s.Stage == payload.StageExec {
		return a.site.wrapper.StartFailure(s, a.work.container.Image())
	}
	return failure.OfStart(err, cmd)
}

// openStreams opens the files that are streamed. Output that the run before a checkpoint
// left in its pipes comes first.
func (a *activation) openStreams(ctx context.Context, spec *payload.Spec) ([]*os.File, error) {
	if err := a.work.streams.Drain(ctx, a.orders); err != nil {
		return nil, err
	}
	var files []*os.File
	var err error
	a.work.streams, files, err = a.job.OpenStreams(ctx, a.peers.shadow, spec)
	return files, err
}

// clearUser removes the sandboxes of this user that dead starters left. It runs
// after the binding, when no process of their jobs can be alive.
func (a *activation) clearUser(ctx context.Context) error {
	stale, err := a.job.Sandbox.RemoveStale(ctx)
	if len(stale) > 0 {
		a.log.Info("Removed the sandboxes of earlier jobs", "names", stale)
	}
	if err != nil {
		return failure.New(shadow.VacateScratchDirError, 0, err)
	}
	return nil
}
