package activation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"syscall"

	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/starter/failure"
	"podstarter/starter/settings"
)

// payloadRun is the job's main process from its start to its end.
type payloadRun struct {
	started payload.Started
	exit    *payload.Exit // nil while it runs
	told    bool          // shadow and startd have heard of the end
	ordered bool          // made to end while it ran, or what it left is not to be taken for its end
	saving  bool          // told to save a checkpoint
	crowd   bool          // killed for its number of processes
}

// Umask is what the job's process starts with (os_proc.cpp:StartJob).
const Umask = 0o022

// start runs the job's program in the bound container. The shadow hears of it
// before it happens, as it does from stock: should the program turn out not to
// be executable, an Execute event precedes the hold.
func (a *activation) start(ctx context.Context) error {
	if err := a.clearUser(ctx); err != nil {
		return err
	}
	if a.runs == 0 { // after a checkpoint all is as it was
		if err := a.setUp(ctx); err != nil {
			return err
		}
		if err := a.preScript(ctx); err != nil {
			return err
		}
	}
	cmd, spec, err := a.specify()
	if err != nil {
		return err
	}
	if err := a.missingInput(spec.Stdin, cmd); err != nil {
		return err
	}
	files, err := a.openStreams(ctx, &spec)
	if err != nil {
		return err
	}
	if increment := a.set.Condor.Renice; increment.Set {
		// As stock, for hooks to see (os_proc.cpp:StartJob). What is no expression
		// has been complained of.
		_ = a.ad.SetExpr("Renice", increment.Value)
	}
	a.desk.Ready(a.ad, a.machine, a.sandbox)
	if a.runs == 0 {
		a.log.Info(job.LineStarting(a.info))
	}
	if err := a.shadow.BeginExecution(context.WithoutCancel(ctx)); err != nil {
		// The first update that says Running does as well.
		a.log.Warn("The shadow does not hear that the job begins", "error", err)
	}
	if a.wrapped {
		a.log.Info(job.LineWrapped(cmd))
	} else {
		a.log.Info(job.LineExec(cmd, a.image.Docker))
	}
	started, err := a.startInside(ctx, spec, files...)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if s := (*payload.StartError)(nil); a.wrapped && errors.As(err, &s) && s.Stage == payload.StageExec {
			return a.wrapperStartFailure(s)
		}
		return failure.OfStart(err, cmd)
	}
	a.streams.begin()
	a.payload = &payloadRun{started: started}
	a.runs++
	a.suspended.Store(false) // as a process is that has just begun
	a.desk.Started(a.container.Client(), spec, started.PID)
	a.log.Info(job.LineStarted(started.PID))
	return nil
}

// startInside starts something in the payload container.
func (a *activation) startInside(ctx context.Context, spec payload.Spec, files ...*os.File) (payload.Started, error) {
	started, err := a.container.Client().Start(ctx, spec, files...)
	if err == nil || errors.As(err, new(*payload.StartError)) {
		a.health.Started()
	}
	return started, err
}

// clearUser removes what starters that died have left of the payload's user. It
// comes after the binding, when nothing of their jobs can be alive.
func (a *activation) clearUser(ctx context.Context) error {
	stale, err := a.sandbox.RemoveStale(ctx)
	if len(stale) > 0 {
		a.log.Info("Removed the sandboxes of earlier jobs", "names", stale)
	}
	if err != nil {
		return failure.New(shadow.VacateScratchDirError, 0, err)
	}
	return nil
}

// specify says what to run, and how, in the words of the wrapper.
func (a *activation) specify() (job.Command, payload.Spec, error) {
	place := a.place()
	cmd, err := job.CommandOf(a.ad, place, a.dockerRules())
	if err != nil {
		return cmd, payload.Spec{}, failure.New(shadow.HoldFailedToCreateProcess, 0, err)
	}
	if cmd.Path == "" {
		return cmd, payload.Spec{}, failure.New(shadow.HoldFailedToCreateProcess, 0, errors.New(
			"the job names no executable, and an image's own command cannot be seen from inside it; name it in the submit file: executable = /path/in/the/image, transfer_executable = false"))
	}
	if wrapper := a.jobWrapper(); wrapper != "" {
		a.wrapped = true
		cmd = cmd.Wrap(wrapper)
	}
	env, err := job.Environment(a.ad, a.cfg, a.surroundings(place))
	if err != nil {
		return cmd, payload.Spec{}, failure.New(shadow.HoldFailedToCreateProcess, 0, fmt.Errorf("build the job's environment: %w", err))
	}
	limits, err := job.LimitsOf(a.ad, a.machine, a.opt.Slot, a.cfg)
	if err != nil {
		a.log.Warn("A knob about limits is not understood, its default holds", "error", err)
	}
	target, err := a.targetDir()
	if err != nil {
		return cmd, payload.Spec{}, failure.New(shadow.HoldFailedToCreateProcess, 0, err)
	}
	stdio := job.StdioOf(a.ad, place)
	uid, gid := a.lease.Owner()
	return cmd, payload.Spec{
		Activation: a.runName(),
		UID:        uid, GID: gid, Groups: groupsOf(uid, gid),
		Path: cmd.Path, Args: append([]string{cmd.Path}, cmd.Args...), SearchPath: cmd.Search,
		Link: target.at, LinkTo: target.to,
		Env: target.retarget(env.Strings(), place.Iwd), ImageEnv: a.set.Backend == settings.BackendPod, HideEnv: a.container.PlatformEnv(),
		Dir: place.Iwd, Umask: Umask,
		Stdin: openable(stdio.In), Stdout: openable(stdio.Out), Stderr: openable(stdio.Err), Append: stdio.Append,
		Nice: limits.Nice, CPUs: limits.CPUs, Limits: append(rlimits(limits), a.taskLimit()...), MaxTasks: a.set.MaxTasks,
	}, nil
}

// dockerRules says whether the command is one of the image's unless it was
// transferred. Container universe jobs with an image of a registry follow the
// same rules on a slot that has docker (starter.cpp:SpawnJob), as this one says
// of itself.
func (a *activation) dockerRules() bool {
	return a.ad.BoolOr("WantDocker", false) || a.ad.BoolOr("WantContainer", false)
}

// place is where the job runs.
func (a *activation) place() job.Place {
	return job.Place{FileTransfer: a.info.FileTransfer, Scratch: a.sandbox.Scratch(), Iwd: a.initialDir()}
}

// initialDir is where the job starts: its sandbox with file transfer, else the
// directory it was submitted from; RemoteIwd can name another.
func (a *activation) initialDir() string {
	dir := a.info.Iwd
	if a.info.FileTransfer {
		dir = a.sandbox.Scratch()
	}
	switch remote := a.info.RemoteIwd; {
	case remote == "":
		return dir
	case path.IsAbs(remote):
		return remote
	default:
		return filepath.Join(a.sandbox.Scratch(), remote)
	}
}

// surroundings is what the job's environment tells of its place. The sandbox
// has the same path in both containers, so nothing is translated.
func (a *activation) surroundings(place job.Place) job.Surroundings {
	home := a.home
	if home == "" {
		// A payload's user has no entry in any passwd file; programs that
		// insist on a home find one that is theirs and goes with the job.
		home = place.Scratch
	}
	iwd := place.Iwd
	if a.info.RemoteIwd != "" {
		iwd = a.info.RemoteIwd // as it is written, be it relative to the sandbox
	}
	around := job.Surroundings{
		Scratch: place.Scratch, Iwd: iwd, FileTransfer: place.FileTransfer,
		Slot:       a.opt.Slot,
		StarterPID: os.Getpid(), Home: home,
		Machine: a.machine, Secrets: a.secrets, Environ: a.environ, ChirpConfig: a.chirp.config, WrapperWorks: a.wrapperWorks(),
		CredDir: a.creds.Tokens(), KerberosCache: a.creds.Tickets(), Proxy: a.creds.Proxy(),
	}
	if p := a.payload; p != nil && p.exit != nil {
		status := p.status()
		around.Ended = &status
	} else if p != nil {
		around.PIDs = []int{p.started.PID}
	}
	return around
}

// openable is the path of a standard file for the wrapper, which takes none for
// the null device. One that is streamed is not on this machine.
func openable(f job.File) string {
	if f.Path == os.DevNull || f.Stream {
		return ""
	}
	return f.Path
}

func rlimits(l job.Limits) []payload.Limit {
	limit := func(resource string, n int64) payload.Limit {
		value := uint64(n)
		if n < 0 {
			value = payload.Unlimited
		}
		return payload.Limit{Resource: resource, Soft: value, Hard: value}
	}
	limits := []payload.Limit{limit("core", l.Core), limit("stack", l.Stack)}
	if l.AS > 0 {
		limits = append(limits, limit("as", l.AS))
	}
	return limits
}

// status is the wait status of an exit.
func (r *payloadRun) status() syscall.WaitStatus { return syscall.WaitStatus(r.exit.WaitStatus) }
