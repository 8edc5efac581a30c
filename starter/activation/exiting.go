package activation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// finishHeld ends a job that the shadow was told to hold: only the startd hears
// how it ended.
func (a *activation) finishHeld(ctx context.Context) error {
	a.enter(held)
	a.peers.reports.TellStartd(ctx, a.account.reaped())
	err := a.work.container.Sweep(ctx)
	a.exitHook(ctx)
	a.peers.reports.TellStartd(ctx, a.account.exiting(ctx))
	a.site.places.TearDown(ctx)
	a.finalUpdate(ctx)
	return err
}

// keepCore gives the core file that the job left in its sandbox a name of its
// own and lets it come back with the output (os_proc.cpp:checkCoreFile). The
// kernel names it core, or core.PID, unless it gives it to a program of the
// node (core(5)).
func (a *activation) keepCore() {
	if !a.job.Info.FileTransfer {
		return // without file transfer the core file is where it belongs
	}
	wanted := fmt.Sprintf("core.%d.%d", a.job.Info.Cluster, a.job.Info.Proc)
	for _, name := range []string{fmt.Sprintf("core.%d", a.work.run.Started.Own()), "core"} {
		switch err := a.job.Sandbox.RenameFile(name, wanted); {
		case err == nil:
			a.log.Info("Found core file", "name", name, "renamed", wanted)
			a.work.coreFile = wanted
			return
		case !errors.Is(err, fs.ErrNotExist):
			a.log.Warn("Failed to rename the core file", "error", err)
		}
	}
}

// added names files that come back whatever the job says of its output.
func (w *work) added() []string {
	if w.coreFile == "" {
		return nil
	}
	return []string{w.coreFile}
}
