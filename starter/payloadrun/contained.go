package payloadrun

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"podstarter/classads"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/localexec/apptainer"
	"podstarter/payload"
	"podstarter/sandbox"
	"podstarter/starter/failure"
	"podstarter/starter/settings"
)

// Contained is an image in which the machine's own runtime runs the job, on an execution point without a pod.
type Contained struct {
	Image string
	// Knob is the site's that chose the image; empty if the job did.
	Knob string
	Site apptainer.Site
	// Runtime is what the runtime says of itself; empty until [Job.MeetRuntime].
	Runtime apptainer.Runtime
	// scratch is what the job has mounted for itself.
	scratch []string
	binds   []string // of the job itself
	built   apptainer.Command
}

// HTCondor's knobs that are expressions over slot and job.
const (
	knobForce        = "SINGULARITY_JOB"
	knobImage        = "SINGULARITY_IMAGE_EXPR"
	knobExtra        = "SINGULARITY_EXTRA_ARGUMENTS"
	knobMounts       = "MOUNT_UNDER_SCRATCH"
	knobUseDefault   = "USE_DEFAULT_CONTAINER"
	knobDefaultImage = "DEFAULT_CONTAINER_IMAGE"
	knobTestSandbox  = "SINGULARITY_TEST_SANDBOX"
)

const attrImage = "SingularityImage"

// siteMistake gives the job back because of something that the site has to correct.
func siteMistake(err error) error {
	return failure.New(shadow.VacateContainerError, 0, fmt.Errorf("this execution point cannot run the job in an image: %w", err))
}

// Contain finds out whether the job runs in an image of the machine's runtime, and how
// (singularity.cpp: job_enabled, setup; starter.cpp:SpawnJob). What the site's configuration gets wrong gives the job
// back to the queue.
func (j *Job) Contain() error {
	j.Contained = nil
	cfg := j.Settings.Config
	c := &Contained{}
	if !j.Ad.BoolOr("WantContainer", false) {
		if err := j.useDefaultImage(c); err != nil {
			return siteMistake(err)
		}
	}
	force, err := cfg.EvalBool(knobForce, false, j.Machine, j.Ad)
	if err != nil {
		return siteMistake(err)
	}
	if !force && !j.Ad.BoolOr("WantSIF", false) && !j.Ad.BoolOr("WantSandboxImage", false) && !j.Ad.BoolOr("WantDockerImage", false) {
		return nil
	}
	if err := j.nameImage(c); err != nil {
		return siteMistake(err)
	}
	if c.Image == "" {
		return siteMistake(fmt.Errorf("images are wanted (%s, or by the job), but neither %s nor the job names one", knobForce, knobImage))
	}
	if err := j.readSite(c); err != nil {
		return siteMistake(err)
	}
	j.Contained = c
	return nil
}

// useDefaultImage gives a job without an image that of the site, by the names that a job would use.
func (j *Job) useDefaultImage(c *Contained) error {
	use, err := j.Settings.Config.EvalBool(knobUseDefault, false, j.Machine, j.Ad)
	if err != nil || !use {
		return err
	}
	name, err := j.evaluated(knobDefaultImage)
	if err != nil || name == "" {
		return err
	}
	j.Ad.SetString("ContainerImage", name)
	want := "WantSandboxImage"
	if strings.HasSuffix(name, ".sif") {
		want = "WantSIF"
	}
	j.Ad.SetBool(want, true)
	c.Knob = knobDefaultImage
	return nil
}

// nameImage reads which image it is.
func (j *Job) nameImage(c *Contained) error {
	text, set := j.Settings.Config.Lookup(knobImage)
	if !set {
		text = attrImage
	}
	name := ""
	if strings.EqualFold(strings.TrimSpace(text), attrImage) { // HTCondor's default
		if name = j.Machine.StringOr(attrImage, ""); name != "" {
			c.Knob = attrImage + " of the slot"
		} else {
			name = j.Ad.StringOr(attrImage, "")
		}
	} else {
		var err error
		if name, err = j.evaluated(knobImage); err != nil {
			return err
		}
		if name != "" {
			c.Knob = knobImage
		}
	}
	if name == "" {
		name = j.Ad.StringOr("ContainerImage", "")
	}
	c.Image = strings.TrimSpace(name)
	return nil
}

// readSite reads what the site says of this job.
func (j *Job) readSite(c *Contained) error {
	knobs := j.Settings.Condor.Apptainer
	site := SiteOf(j.Settings)
	err := site.Check()
	if err != nil {
		return err
	}
	site.PIDNamespaces = j.Machine.BoolOr("HasPidNamespaces", false) // what a probe found; see starter's advertise.go
	if knobs.PIDNamespaces != nil {
		site.PIDNamespaces = *knobs.PIDNamespaces
	}
	binds := j.Machine.StringOr(attrBinds, "")
	if binds == "" {
		c.binds = words(j.Ad.StringOr(attrBinds, ""))
	}
	if text, set := j.Settings.Config.Lookup(knobBinds); set && !strings.EqualFold(strings.TrimSpace(text), attrBinds) {
		c.binds = nil
		if binds, err = j.evaluated(knobBinds); err != nil {
			return err
		}
	}
	site.Binds = words(binds)
	site.Scratch = words(j.stringOrText(knobMounts, j.Ad, nil))
	c.scratch = words(j.Ad.StringOr("MountUnderScratch", ""))
	if site.Extra, err = j.extraArguments(); err != nil {
		return err
	}
	c.Site = site
	return nil
}

// SiteOf is what the configuration says of the runtime, whatever the job.
func SiteOf(s settings.Settings) apptainer.Site {
	knobs := s.Condor.Apptainer
	return apptainer.Site{
		Program: knobs.Program, Verbosity: knobs.Verbosity, Launcher: knobs.Launcher, TargetDir: strings.TrimSpace(s.Condor.TargetDir.Value),
		IgnoreMissingTargets: knobs.IgnoreMissingTargets, ROCm: knobs.ROCm, AllowedEnv: knobs.AllowedEnv,
	}
}

// evaluated is the value of a knob that is an expression for a string. One that gives something else gives nothing, as in
// stock; one that is no expression is an error.
func (j *Job) evaluated(knob string) (string, error) {
	if _, err := j.Settings.Config.Expr(knob); err != nil {
		return "", err
	}
	value, err := j.Settings.Config.EvalString(knob, "", j.Machine, j.Ad)
	if err != nil {
		j.Log.Warn("A knob gives no string for this job, so that it has no effect", "knob", knob, "error", err)
		return "", nil
	}
	return value, nil
}

// stringOrText is the value of a knob that is an expression for a string, or else its text.
func (j *Job) stringOrText(knob string, my, target *classads.Ad) string {
	if e, err := j.Settings.Config.Expr(knob); err == nil && e != nil {
		if value, ok := e.Eval(classads.Env{My: my, Target: target}).Str(); ok {
			return value
		}
	}
	return j.Settings.Config.String(knob, "")
}

// extraArguments are an expression, or plain text, in HTCondor's syntax of arguments.
func (j *Job) extraArguments() ([]string, error) {
	text, err := j.stringOrText(knobExtra, j.Machine, j.Ad), error(nil)
	split := job.SplitV1
	if job.IsV2Quoted(text) {
		if text, err = job.UnquoteV2(text); err != nil {
			return nil, fmt.Errorf("%s: %w", knobExtra, err)
		}
		split = job.SplitV2
	}
	args, err := split(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", knobExtra, err)
	}
	return args, nil
}

// words splits a list at commas and white space.
func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) })
}

// MeetRuntime asks the runtime for its version, in the job's container and as its user.
func (j *Job) MeetRuntime(ctx context.Context, c *Container) error {
	if j.Contained == nil || j.Contained.Runtime.Version != "" {
		return nil
	}
	program := j.Contained.Site.Program
	exit, _, err := c.Run(ctx, j.beside("version", "/", program, nil, "--version"))
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return siteMistake(fmt.Errorf("SINGULARITY is %s, which cannot be executed: %w", program, err))
	case exit.WaitStatus != 0:
		return siteMistake(fmt.Errorf("SINGULARITY is %s, which does not say its version: %s", program, apptainer.LastWords(exit.Output)))
	}
	j.Contained.Runtime = apptainer.RuntimeOf(exit.Output)
	j.Log.Info("[singularity version] " + j.Contained.Runtime.Version)
	return nil
}

// beside is a program that runs for the job where the job will run.
func (j *Job) beside(what, dir, program string, env []string, args ...string) payload.Spec {
	return payload.Spec{
		Activation: j.Name + "." + what, UID: j.UID, GID: j.GID, Groups: groupsOf(j.UID, j.GID), Path: program, Args: append([]string{program}, args...),
		Env: env, Dir: dir, Umask: Umask, Capture: payload.MaxCapture, MaxTasks: j.Settings.MaxTasks,
	}
}

// contain puts the runtime before the job's command.
func (j *Job) contain(cmd job.Command, env []string) (job.Command, []string, error) {
	c, place := j.Contained, j.Place()
	w := apptainer.Wish{
		Image: c.Image, Path: cmd.Path, Args: cmd.Args, Slot: j.Sandbox.Dir(), Sandbox: place.Scratch, Iwd: filepath.Clean(place.Iwd),
		TargetDir: strings.TrimSpace(j.Ad.StringOr("ContainerTargetDir", "")), Scratch: c.scratch, Binds: c.binds, Env: env, Machine: j.Machine.StringOr("Name", j.Slot),
		GPUs: apptainer.GPUs{
			Assigned: j.Machine.StringOr("AssignedGPUs", "") != "", Nvidia: j.Machine.StringOr("GPUs_NvidiaDriver", "") != "", ROCm: j.Machine.IntOr("GPUs_Rocm", 0) > 0,
		},
	}
	var err error
	if c.built, err = apptainer.Build(c.Site, c.Runtime, w, j.disk(w.Iwd)); err != nil {
		if m := (*apptainer.Mistake)(nil); errors.As(err, &m) && (m.Site || c.Knob != "" && m.Setting == "container_image") {
			return cmd, nil, siteMistake(err)
		}
		return cmd, nil, failure.New(shadow.HoldFailedToCreateProcess, 0, err)
	}
	cmd.Path, cmd.Args, cmd.Search, cmd.Transferred = c.built.Path, c.built.Args, false, false
	return cmd, c.built.Env, nil
}

// asUser is what the job's user sees of the machine: the job names some of the paths, and learns from what happens whether they are
// there (stock has the same identity, os_proc.cpp:StartJob).
type asUser struct {
	sandbox.Owner
	see apptainer.ByMachine
}

func (j *Job) disk(dir string) asUser {
	return asUser{Owner: j.FilesOwner(), see: apptainer.ByMachine{Dir: dir}}
}

func (d asUser) Exists(path string) bool { return d.is(d.see.Exists, path) }

func (d asUser) IsDir(path string) bool { return d.is(d.see.IsDir, path) }

func (d asUser) is(look func(string) bool, path string) (is bool) {
	err := d.Become(func() error {
		is = look(path)
		return nil
	})
	return is && err == nil
}

// TestImage runs the image's own test before the job, as stock does (os_proc.cpp:StartJob, singularity.cpp:runTest). Unlike
// stock it finds out who is to blame: if the runtime, with what the site adds to its arguments, runs HTCondor's own image, then an
// image among the job's files is at fault, and the job is held. Otherwise it goes back to the queue.
func (j *Job) TestImage(ctx context.Context, c *Container) error {
	k := j.Contained
	if k == nil || !j.Settings.Condor.Apptainer.TestFirst {
		return nil
	}
	dir := j.Place().Iwd
	bounded, cancel := context.WithTimeout(ctx, j.Settings.BindTimeout)
	defer cancel()
	status, words, err := j.try(bounded, c, "test", dir, k.built.Test)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil && status == 0 {
		return nil
	}
	if err != nil {
		words = err.Error()
	}
	said := fmt.Errorf("Singularity test failed:%s", words) //nolint:staticcheck // stock's words
	back := failure.New(shadow.HoldSingularityTestFailed, shadow.SubcodeRequeue, said)
	if err != nil || apptainer.IsURL(k.Image) || !j.disk(dir).Exists(k.Image) && path.IsAbs(k.Image) {
		return back // a registry, or a file system that this machine lacks
	}
	sandbox := j.Settings.Condor.Apptainer.TestSandbox
	if !j.disk("/").Exists(path.Join(sandbox, apptainer.Good)) {
		j.Log.Warn("Whether the image or this machine is to blame is not known, without HTCondor's own image", "knob", knobTestSandbox, "path", sandbox)
		return back
	}
	bounded, cancel = context.WithTimeout(ctx, j.Settings.Condor.Apptainer.TestTimeout)
	defer cancel()
	status, control, err := j.try(bounded, c, "control", dir, append(k.built.Control[:len(k.built.Control):len(k.built.Control)], sandbox, apptainer.Good))
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil || status != apptainer.GoodStatus:
		return siteMistake(fmt.Errorf("%s does not run HTCondor's own image (%s) either, as user %d, with the arguments of this site (%s, %s, %s): %s",
			k.Site.Program, sandbox, j.UID, knobBinds, knobExtra, knobMounts, control))
	case k.Knob != "":
		return siteMistake(fmt.Errorf("the image %.200q, which is the choice of this execution point (%s), does not run: %s", k.Image, k.Knob, words))
	}
	return failure.New(shadow.HoldSingularityTestFailed, 0, fmt.Errorf(
		"%w (container_image is %.200q. Other images run on this machine, so this one does not work, or container_target_dir, mount_under_scratch or SingularityBind are impossible in it; try it with: apptainer test)", said, k.Image))
}

// try runs the runtime and gives its exit status and its last words.
func (j *Job) try(ctx context.Context, c *Container, what, dir string, args []string) (int, string, error) {
	exit, _, err := c.Run(ctx, j.beside(what, dir, j.Contained.built.Path, j.Contained.built.Env, args...))
	words := apptainer.LastWords(exit.Output)
	j.Log.Info("Ran Apptainer's "+what+" before the job", "status", exit.WaitStatus, "said", words, "error", err)
	return syscall.WaitStatus(exit.WaitStatus).ExitStatus(), words, err
}

// Enter is the command, with argv[0], and the environment by which somebody who visits the job runs a script in its image; env is that
// of the visit. pid is the runtime's process, 0 if it has ended.
func (k *Contained) Enter(pid int, env []string, script string, args ...string) (argv, whole []string, err error) {
	if pid == 0 {
		argv, whole = k.built.Beside(k.Runtime, env, script, args...)
		return argv, whole, nil
	}
	process, err := apptainer.InImage("/proc", pid)
	if err != nil {
		return nil, nil, err
	}
	script, args, env = loaderLater(script, args, env)
	return k.Site.Enter(process, script, args...), env, nil
}

// loaderLater has a script set the variables of the dynamic loader (ld.so(8)) that are in env: they are about
// libraries in the image, and the program that enters it is the machine's.
func loaderLater(script string, args, env []string) (string, []string, []string) {
	var outside, inside []string
	for _, variable := range env {
		if strings.HasPrefix(variable, "LD_") {
			inside = append(inside, variable)
		} else {
			outside = append(outside, variable)
		}
	}
	if inside == nil {
		return script, args, env
	}
	const set = `n=$1; shift; while [ "$n" -gt 0 ]; do export "$1"; shift; n=$((n-1)); done; `
	return set + script, slices.Concat([]string{strconv.Itoa(len(inside))}, inside, args), outside
}

// Inside is the environment of the job in its image.
func (k *Contained) Inside() []string { return k.built.Inside(k.Runtime) }

// launched is the file that HTCondor's launcher makes.
const launched = ".condor_container_launched"

// Launched says whether the runtime got as far as the job, if the site has its launcher; without one nobody knows. If it did
// not, the exit status is the runtime's (os_proc.cpp:JobReaper).
func (j *Job) Launched() error {
	if j.Contained == nil || j.Contained.Site.Launcher == "" || j.disk(j.Sandbox.Scratch()).Exists(launched) {
		return nil
	}
	return siteMistake(errors.New("Apptainer runtime failed to start")) //nolint:staticcheck // stock's words
}
