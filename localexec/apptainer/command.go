package apptainer

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Site is what the site says of its runtime. Values of knobs that are expressions are those for
// one job.
type Site struct {
	Program   string // SINGULARITY: the runtime, an absolute path
	Verbosity string // SINGULARITY_VERBOSITY; empty for none
	TargetDir string // SINGULARITY_TARGET_DIR; empty: the job's
	// Launcher is the file of HTCondor's launcher (SINGULARITY_USE_LAUNCHER); empty without it.
	Launcher string
	Binds    []string // SINGULARITY_BIND_EXPR, each SOURCE[:TARGET[:OPTIONS]]
	// IgnoreMissingTargets leaves out binds whose target an image that is a directory lacks
	// (SINGULARITY_IGNORE_MISSING_BIND_TARGET).
	IgnoreMissingTargets bool
	Scratch              []string // MOUNT_UNDER_SCRATCH
	Extra                []string // SINGULARITY_EXTRA_ARGUMENTS
	ROCm                 bool     // SINGULARITY_ADD_ROCM_FLAG
	PIDNamespaces        bool     // a PID namespace for each job; see [Runtime]
	AllowedEnv           []string // SINGULARITY_ALLOWED_JOB_ENV_VARS
}

// Check finds what is wrong with the site's runtime before anything is run.
func (s Site) Check() error {
	if !path.IsAbs(s.Program) {
		return &Mistake{Setting: "SINGULARITY", Site: true, Value: s.Program, Why: "which is not the absolute path of a program"}
	}
	return nil
}

// Wish is what a job wants to run, and where.
type Wish struct {
	Image string // as the job names it, relative to Iwd
	// Path is the program, and Args are what follows it. Without a program the image's own runs.
	Path      string
	Args      []string
	Slot      string // the job's directory
	Sandbox   string // where its files are: Slot, or below it
	Iwd       string // where it starts; Sandbox with file transfer
	TargetDir string // container_target_dir
	Scratch   []string
	Binds     []string // as those of the site, which come first
	Env       []string // NAME=value
	GPUs      GPUs
	Machine   string // the slot's name, for the prompt of a shell
}

// GPUs are those of the job's slot.
type GPUs struct{ Assigned, Nvidia, ROCm bool }

// Disk is what [Build] looks at: whether paths exist, and are directories. Relative paths are
// relative to the job's Iwd.
type Disk interface {
	Exists(path string) bool
	IsDir(path string) bool
}

// Command is what is executed outside the image, with its whole environment.
type Command struct {
	Path string
	Args []string // after argv[0]
	Env  []string
	// Test is what is run before the job, in the same environment, to find out whether the image
	// works (SINGULARITY_RUN_TEST_BEFORE_JOB).
	Test []string
	// Again are the arguments up to the image, for another program in the same image beside the job.
	Again []string
	// Control are the arguments up to the image, as the site alone makes them. With an image that is known
	// to work they show whether the site or the job is to blame for a test that failed.
	Control []string
}

// Mistake is one in what the job wants, or the site.
type Mistake struct {
	Setting string // the command of the submit file, or the site's knob
	Site    bool   // it is the knob
	Value   string
	Why     string
}

// Error names the command or the knob.
func (m *Mistake) Error() string {
	return fmt.Sprintf("%s is %.200q, %s", m.Setting, m.Value, m.Why)
}

const (
	launcherInside = "/condor_container_launcher.sh"
	scratchInside  = "/condor_scratch" // of a job that starts elsewhere
	openCL         = "/etc/OpenCL/vendors"
)

// Build makes the command that runs a job in an image (singularity.cpp:Singularity::setup), for a runtime of
// which r is known. The error is a *[Mistake]: a word that would be an option or another bind for the runtime
// is refused, since a site may rely on its images.
func Build(s Site, r Runtime, w Wish, disk Disk) (Command, error) {
	verb, stays := "exec", w.Iwd == w.Sandbox
	if err := w.check(stays); err != nil {
		return Command{}, err
	}
	if s.TargetDir != "" {
		if !mountable(s.TargetDir) {
			return Command{}, &Mistake{Setting: "SINGULARITY_TARGET_DIR", Site: true, Value: s.TargetDir, Why: notMountable}
		}
		w.TargetDir = s.TargetDir
	}
	if w.Path == "" {
		verb = "run"
	}
	var before, own []string // own are the job's
	if s.Verbosity != "" {
		before = append(before, s.Verbosity)
	}
	s.Scratch = unique(s.Scratch) // the runtime fails if it is told twice
	scratch := mounts("-S", s.Scratch)
	own = append(own, scratch...)
	own = append(own, mounts("-S", slices.DeleteFunc(unique(w.Scratch), func(dir string) bool { return slices.Contains(s.Scratch, dir) }))...)
	if !stays {
		own = append(own, "-B", w.Iwd)
	}
	if s.Launcher != "" {
		own = append(own, "-B", s.Launcher+":"+launcherInside)
	}
	own = append(own, "-W", w.Sandbox)
	own = append(own, w.places(stays)...)
	// around are the arguments with these binds.
	around := func(binds []string) []string {
		args := append(s.gpus(w.GPUs), mounts("-B", s.bound(binds, w, disk))...)
		if stays {
			args = append(args, "--home", w.Sandbox)
		}
		return slices.Concat(args, s.containment(), s.Extra)
	}
	args := around(slices.Concat(s.Binds, w.Binds))
	image := w.image()

	c := Command{Path: s.Program, Env: environment(s, r, w, stays)}
	whole := slices.Concat(before, []string{verb}, own, args, []string{image})
	c.Again = slices.Concat(before, []string{"exec"}, own, args, []string{image})
	c.Test = slices.Concat(before, []string{"-q", "test"}, own, args, []string{image})
	plain := w
	plain.TargetDir = s.TargetDir
	c.Control = slices.Concat(before, []string{"exec"}, scratch, []string{"-W", w.Sandbox}, plain.places(stays), around(s.Binds))
	if w.Path != "" {
		if s.Launcher != "" {
			whole = append(whole, launcherInside)
		}
		whole = append(whole, w.program())
	}
	c.Args = append(whole, w.Args...)
	return c, nil
}

// unique is the list without repetitions.
func unique(list []string) []string {
	var once []string
	for _, one := range list {
		if !slices.Contains(once, one) {
			once = append(once, one)
		}
	}
	return once
}

// mounts are options, each with its value.
func mounts(option string, values []string) []string {
	var args []string
	for _, value := range values {
		args = append(args, option, value)
	}
	return args
}

// check refuses what the runtime would take for something else.
func (w Wish) check(stays bool) error {
	switch {
	case strings.TrimSpace(w.Image) == "":
		return &Mistake{Setting: "container_image", Value: w.Image, Why: "which names no image"}
	case strings.HasPrefix(w.Image, "-"):
		return &Mistake{Setting: "container_image", Value: w.Image, Why: "which would be an option; begin it with ./"}
	case w.TargetDir != "" && !mountable(w.TargetDir):
		return &Mistake{Setting: "container_target_dir", Value: w.TargetDir, Why: notMountable}
	case !stays && !mountable(w.Iwd):
		return &Mistake{Setting: "initialdir", Value: w.Iwd, Why: notMountable}
	}
	for _, dir := range w.Scratch {
		if !mountable(dir) {
			return &Mistake{Setting: "mount_under_scratch", Value: dir, Why: notMountable}
		}
	}
	return nil
}

const notMountable = "which is not an absolute path without commas, colons and backslashes"

// mountable says whether a path stands for itself where the runtime reads binds.
func mountable(dir string) bool { return path.IsAbs(dir) && !strings.ContainsAny(dir, ",:\\") }

// places mount the job's directories and say where it starts.
func (w Wish) places(stays bool) []string {
	from := w.Slot
	if !stays {
		from = w.Iwd
	}
	switch {
	case w.TargetDir == "":
		return []string{"--pwd", w.Iwd, "-B", from}
	case stays:
		return []string{"--pwd", strings.ReplaceAll(w.Sandbox, w.Slot, w.TargetDir), "-B", from + ":" + w.TargetDir}
	default:
		return []string{"--pwd", w.TargetDir, "-B", w.Slot + ":" + scratchInside, "-B", from + ":" + w.TargetDir}
	}
}

// program is the job's program as it is found inside. As in stock, a name that is not below the
// sandbox is the image's.
func (w Wish) program() string {
	if w.TargetDir != "" && strings.HasPrefix(w.Path, w.Sandbox) {
		return w.TargetDir + "/" + strings.TrimPrefix(w.Path, w.Slot)
	}
	return w.Path
}

// image is the image as the runtime finds it.
func (w Wish) image() string {
	if w.Iwd != w.Sandbox && !path.IsAbs(w.Image) && !IsURL(w.Image) {
		return w.Iwd + "/" + w.Image
	}
	return w.Image
}

// IsURL says whether the runtime fetches an image itself.
func IsURL(image string) bool { return strings.Contains(image, "://") }

// gpus have the machine's drivers mounted.
func (s Site) gpus(g GPUs) []string {
	var args []string
	if g.Assigned && g.Nvidia {
		args = append(args, "--nv")
	}
	if g.Assigned && (g.ROCm || s.ROCm) {
		args = append(args, "--rocm")
	}
	return args
}

// bound are the site's binds. Those whose source the machine lacks are left out. Unlike stock, OpenCL's drivers do not
// depend on whether the site has binds of its own.
func (s Site) bound(binds []string, w Wish, disk Disk) []string {
	binds = slices.Clone(binds)
	if w.GPUs.Assigned && disk.IsDir(openCL) && !slices.Contains(binds, openCL) {
		binds = append(binds, openCL)
	}
	root := w.image()
	checks := s.IgnoreMissingTargets && !IsURL(root) && disk.IsDir(root)
	return slices.DeleteFunc(binds, func(bind string) bool {
		source, rest, _ := strings.Cut(bind, ":")
		target, _, _ := strings.Cut(rest, ":")
		if rest == "" {
			target = source
		}
		return !disk.Exists(source) || checks && !disk.IsDir(root+"/"+target)
	})
}

// containment keeps the machine's files, processes and environment out. Without a PID namespace, which -C implies,
// it is the rest of what -C does.
func (s Site) containment() []string {
	if s.PIDNamespaces {
		return []string{"-C"}
	}
	return []string{"--contain", "--ipc", "--cleanenv"}
}
