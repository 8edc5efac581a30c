package activation

import (
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"syscall"

	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/sandbox"
	"podstarter/starter/failure"
	"podstarter/starter/hostprog"
	"podstarter/starter/orders"
	"podstarter/starter/settings"
)

const (
	stageSetup    = "setup"
	stageTeardown = "teardown"
)

// maxScriptOutput is how much of what a program inside the payload container
// writes is kept, in bytes.
const maxScriptOutput = 16 << 10

// errScript is in the chain of the error of a set-up that failed.
var errScript = errors.New("the site's set-up failed")

// setUp prepares the places of the job: the pilot container, then the payload
// container, in which nothing of the job has run yet. A failure is the site's.
func (a *activation) setUp(ctx context.Context) error {
	site := a.set.Programs
	a.tearDownDue = true
	for _, step := range []struct {
		knob settings.Knob
		path string
		run  func(context.Context, string, string) error
	}{{settings.KnobSetup, site.Setup, a.runInPilot}, {settings.KnobContainerSetup, site.ContainerSetup, a.runInContainer}} {
		if step.path == "" {
			continue
		}
		err := phase(ctx, a.log, "set-up", func(ctx context.Context) error { return step.run(ctx, step.path, stageSetup) })
		switch {
		case err == nil:
		case errors.Is(err, orders.ErrEnded), errors.Is(err, shadow.ErrLost), !errors.Is(err, errScript):
			return err
		default:
			return failure.New(shadow.VacateStarterError, 0, &payload.Verdict{
				Blame: payload.Site, Message: fmt.Sprintf("%s did not prepare this execution point for the job", step.knob.Name), Err: err,
			})
		}
	}
	return nil
}

// tearDown tidies the places of the job up, once, if they were prepared. Nothing of
// the job is alive: the sweep has proven that, or there is no container any more.
func (a *activation) tearDown(ctx context.Context) {
	if !a.tearDownDue {
		return
	}
	a.tearDownDue = false
	site := a.set.Programs
	ctx = context.WithoutCancel(ctx) // bounded by the limit
	if site.ContainerTeardown != "" && a.container != nil && a.swept {
		err := phase(ctx, a.log, "tear-down", func(ctx context.Context) error {
			return a.runInContainer(ctx, site.ContainerTeardown, stageTeardown)
		})
		if err != nil {
			a.log.Error(settings.KnobContainerTeardown.Name+" failed", "error", err)
		}
	}
	if site.Teardown != "" {
		err := phase(ctx, a.log, "tear-down", func(ctx context.Context) error { return a.runInPilot(ctx, site.Teardown, stageTeardown) })
		if err != nil {
			a.log.Error(settings.KnobTeardown.Name+" failed", "error", err)
		}
	}
}

// runInPilot runs a program beside the starter, as the starter's own user. It is
// told nothing that the job can choose but the job's ad, on its standard input,
// and does not begin in a directory of the job's.
func (a *activation) runInPilot(ctx context.Context, path, stage string) error {
	p := hostprog.Program{
		Path: path, Args: []string{stage}, Dir: "/", Env: append(append([]string(nil), a.environ...), a.scriptEnvironment(stage)...),
		Stdin: []byte(public(a.ad).FormatOld()), As: sandbox.Self(), Limit: a.set.Programs.Limit,
	}
	o, err := p.Run(ctx, true)
	if err != nil {
		if errors.Is(err, hostprog.ErrNotRun) {
			err = fmt.Errorf("%w: %w", errScript, err)
		}
		return err
	}
	return a.scriptEnded(path, o.Describe(), o.Stdout, !o.Late && o.Status.Exited() && o.Status.ExitStatus() == 0)
}

// scriptEnvironment is what such programs are told.
func (a *activation) scriptEnvironment(stage string) []string {
	uid, gid := a.lease.Owner()
	return []string{
		"POD_STARTER_STAGE=" + stage,
		"_CONDOR_SCRATCH_DIR=" + a.sandbox.Scratch(),
		"_CONDOR_SLOT=" + a.opt.Slot,
		fmt.Sprintf("CONDOR_STARTER_PID=%d", os.Getpid()),
		fmt.Sprintf("POD_STARTER_JOB_UID=%d", uid),
		fmt.Sprintf("POD_STARTER_JOB_GID=%d", gid),
	}
}

// scriptEnded logs a program's end and judges it.
func (a *activation) scriptEnded(path, how string, output []byte, good bool) error {
	said := hostprog.Excerpt(output)
	if good {
		a.log.Info(path+" "+how, "output", said)
		return nil
	}
	if said != "" {
		how += ": " + said
	}
	return fmt.Errorf("%w: %s %s", errScript, path, how)
}

// rootPath is where container-root's programs find others, if they look for any.
const rootPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// runInContainer runs a program of the pilot container inside the payload
// container, and then proves that nothing of it is left. The program's file travels
// with the request: no path in the container leads to it.
func (a *activation) runInContainer(ctx context.Context, path, stage string) error {
	spec, err := a.containerProgram(path, stage)
	if err != nil {
		return fmt.Errorf("%w: %w", errScript, err)
	}
	within, release := context.WithTimeoutCause(ctx, a.set.Programs.Limit, fmt.Errorf("it took longer than %s", a.set.Programs.Limit))
	defer release()
	exit, _, err := a.runInside(within, spec)
	if sweepErr := a.container.Client().Sweep(context.WithoutCancel(ctx)); sweepErr != nil && err == nil {
		err = fmt.Errorf("something of %s is left: %w", path, sweepErr)
	}
	switch s := (*payload.StartError)(nil); {
	case errors.As(err, &s):
		return fmt.Errorf("%w: %s cannot be run inside the payload container: %s", errScript, path, s.Detail)
	case err != nil && ctx.Err() == nil && within.Err() != nil:
		return fmt.Errorf("%w: %s: %w", errScript, path, context.Cause(within))
	case err != nil:
		return err
	}
	status := syscall.WaitStatus(exit.WaitStatus)
	return a.scriptEnded(path, hostprog.Outcome{Status: status}.Describe(), exit.Output, status.Exited() && status.ExitStatus() == 0)
}

// containerProgram says how a program is run inside the payload container.
func (a *activation) containerProgram(path, stage string) (payload.Spec, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return payload.Spec{}, err
	}
	uid, gid := a.lease.Owner()
	spec := payload.Spec{
		Activation: a.name + "." + stage, UID: uid, GID: gid,
		Path: path, Args: []string{path, stage}, Program: file,
		Dir: "/", Umask: Umask, Capture: maxScriptOutput,
	}
	if a.set.Programs.As == settings.ScriptsAsPayload {
		env := job.NewEnv()
		if err := job.Publish(env, a.ad, a.cfg, a.surroundings(a.place())); err != nil {
			return spec, err
		}
		spec.Env = append(env.Strings(), a.scriptEnvironment(stage)...)
		spec.ImageEnv, spec.HideEnv = a.set.Backend == settings.BackendPod, a.container.PlatformEnv()
		spec.Dir = a.sandbox.Scratch()
		return spec, nil
	}
	if a.set.Programs.As == settings.ScriptsAsRoot {
		if err := usesNoImage(file); err != nil {
			return spec, fmt.Errorf("%s cannot run as container-root: %w; link it statically, or see %s", path, err, settings.KnobContainerScriptsAs.Name)
		}
	}
	spec.AsRoot = true
	spec.Env = append([]string{rootPath}, a.scriptEnvironment(stage)...)
	return spec, nil
}

// usesNoImage makes sure that the kernel executes this file and nothing else: no
// interpreter and no dynamic loader of an image that its user chose.
func usesNoImage(file []byte) error {
	if bytes.HasPrefix(file, []byte("#!")) {
		return errors.New("it is a script, whose interpreter would be the image's")
	}
	f, err := elf.NewFile(bytes.NewReader(file))
	if err != nil {
		return fmt.Errorf("it is not an ELF program: %w", err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return errors.New("it is linked dynamically, with a loader and libraries that would be the image's")
		}
	}
	return nil
}
