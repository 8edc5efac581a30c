package hooks

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
	"podstarter/starter/payloadrun"
	"podstarter/starter/settings"
	"podstarter/starter/steps"
)

// Container is the payload container.
type Container interface {
	// Run runs a program to its end; see payloadrun.Container.
	Run(ctx context.Context, spec payload.Spec) (payload.Exit, int, error)
	// Sweep kills what is left there and proves that nothing survived.
	Sweep(ctx context.Context) error
	// Vacant says whether that is proven.
	Vacant() bool
	PlatformEnv() []string
}

// Places are the places of the job, which the site's programs prepare and tidy: the pilot
// container and the payload container. Its methods are for one goroutine. The zero value
// was not prepared.
type Places struct {
	Options
	container Container
	state     state
}

// state is what was done to the places.
type state int

const (
	untouched state = iota
	prepared        // or a program has tried to
	tidied
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

// SetUp prepares the places of the job: the pilot container, then the payload
// container, in which nothing of the job has run yet. A failure is the site's.
func (p *Places) SetUp(ctx context.Context, o Options, c Container) error {
	p.Options, p.container = o, c
	site := p.Settings.Programs
	p.state = prepared
	for _, step := range []struct {
		knob settings.Knob
		path string
		run  func(context.Context, string, string) error
	}{{settings.KnobSetup, site.Setup, p.runInPilot}, {settings.KnobContainerSetup, site.ContainerSetup, p.runInContainer}} {
		if step.path == "" {
			continue
		}
		err := steps.Run(ctx, p.Log, "set-up", func(ctx context.Context) error { return step.run(ctx, step.path, stageSetup) })
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

// TearDown tidies the places of the job up, once, if they were prepared. No process
// of the job is alive: the sweep has proven that, or there is no container any
// more.
func (p *Places) TearDown(ctx context.Context) {
	if p.state != prepared {
		return
	}
	p.state = tidied
	site := p.Settings.Programs
	ctx = context.WithoutCancel(ctx) // bounded by the limit
	if site.ContainerTeardown != "" && p.container.Vacant() {
		err := steps.Run(ctx, p.Log, "tear-down", func(ctx context.Context) error {
			return p.runInContainer(ctx, site.ContainerTeardown, stageTeardown)
		})
		if err != nil {
			p.Log.Error(settings.KnobContainerTeardown.Name+" failed", "error", err)
		}
	}
	if site.Teardown != "" {
		err := steps.Run(ctx, p.Log, "tear-down", func(ctx context.Context) error { return p.runInPilot(ctx, site.Teardown, stageTeardown) })
		if err != nil {
			p.Log.Error(settings.KnobTeardown.Name+" failed", "error", err)
		}
	}
}

// runInPilot runs a program beside the starter, as the starter's own user. Of
// what the job can choose it gets only the job's ad, on its standard input. It
// does not begin in a directory of the job.
func (p *Places) runInPilot(ctx context.Context, path, stage string) error {
	run := hostprog.Program{
		Path: path, Args: []string{stage}, Dir: "/", Env: append(append([]string(nil), p.Programs.Environ...), p.scriptEnvironment(stage)...),
		Stdin: []byte(p.Job.Ad.Public().FormatOld()), As: sandbox.Self(), Limit: p.Settings.Programs.Limit,
	}
	o, err := run.Run(ctx, true)
	if err != nil {
		if errors.Is(err, hostprog.ErrNotRun) {
			err = fmt.Errorf("%w: %w", errScript, err)
		}
		return err
	}
	return p.scriptEnded(path, o.Describe(), o.Stdout, !o.Late && o.Status.Exited() && o.Status.ExitStatus() == 0)
}

// scriptEnvironment is what such programs are told.
func (p *Places) scriptEnvironment(stage string) []string {
	return []string{
		"POD_STARTER_STAGE=" + stage,
		"_CONDOR_SCRATCH_DIR=" + p.Job.Sandbox.Scratch(),
		"_CONDOR_SLOT=" + p.Job.Slot,
		fmt.Sprintf("CONDOR_STARTER_PID=%d", os.Getpid()),
		fmt.Sprintf("POD_STARTER_JOB_UID=%d", p.Job.UID),
		fmt.Sprintf("POD_STARTER_JOB_GID=%d", p.Job.GID),
	}
}

// scriptEnded logs a program's end and judges it.
func (p *Places) scriptEnded(path, how string, output []byte, good bool) error {
	said := hostprog.Excerpt(output)
	if good {
		p.Log.Info(path+" "+how, "output", said)
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
func (p *Places) runInContainer(ctx context.Context, path, stage string) error {
	spec, err := p.containerProgram(path, stage)
	if err != nil {
		return fmt.Errorf("%w: %w", errScript, err)
	}
	within, release := context.WithTimeoutCause(ctx, p.Settings.Programs.Limit, fmt.Errorf("it took longer than %s", p.Settings.Programs.Limit))
	defer release()
	exit, _, err := p.container.Run(within, spec)
	if sweepErr := p.container.Sweep(context.WithoutCancel(ctx)); sweepErr != nil && err == nil {
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
	return p.scriptEnded(path, hostprog.Outcome{Status: status}.Describe(), exit.Output, status.Exited() && status.ExitStatus() == 0)
}

// containerProgram says how a program is run inside the payload container.
func (p *Places) containerProgram(path, stage string) (payload.Spec, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return payload.Spec{}, err
	}
	spec := payload.Spec{
		Activation: p.Job.Name + "." + stage, UID: p.Job.UID, GID: p.Job.GID,
		Path: path, Args: []string{path, stage}, Program: file,
		Dir: "/", Umask: payloadrun.Umask, Capture: maxScriptOutput,
	}
	if p.Settings.Programs.As == settings.ScriptsAsPayload {
		env := job.NewEnv()
		if err := job.Publish(env, p.Job.Ad, p.Settings.Config, p.Job.Surroundings()); err != nil {
			return spec, err
		}
		spec.Env = p.Job.OverImage(append(env.Strings(), p.scriptEnvironment(stage)...))
		spec.ImageEnv, spec.HideEnv = p.Settings.InPod(), p.container.PlatformEnv()
		spec.Dir = p.Job.Sandbox.Scratch()
		return spec, nil
	}
	if p.Settings.Programs.As == settings.ScriptsAsRoot {
		if err := usesNoImage(file); err != nil {
			return spec, fmt.Errorf("%s cannot run as container-root: %w; link it statically, or see %s", path, err, settings.KnobContainerScriptsAs.Name)
		}
	}
	spec.AsRoot = true
	spec.Env = append([]string{rootPath}, p.scriptEnvironment(stage)...)
	return spec, nil
}

// usesNoImage makes sure that the kernel executes this file and nothing else: no
// interpreter and no dynamic loader of an image that the user chose.
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
