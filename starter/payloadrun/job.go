package payloadrun

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"

	"podstarter/classads"
	"podstarter/condor/java"
	"podstarter/condor/job"
	"podstarter/condor/shadow"
	"podstarter/payload"
	"podstarter/sandbox"
	"podstarter/starter/failure"
	"podstarter/starter/settings"
)

// Umask is what the job's process starts with (os_proc.cpp:StartJob).
const Umask = 0o022

// Job says what is to run in the payload container, and how. The phases fill it in, in
// their order; one goroutine uses it.
type Job struct {
	Name     string // of the activation
	Slot     string // "slot1_1"
	Settings settings.Settings
	Environ  []string // the starter's own, without what daemons keep secret
	Log      *slog.Logger

	Ad      *classads.Ad // the job's
	Machine *classads.Ad // the slot's
	Overlay *classads.Ad // what the startd replaces in the job's ad; may be nil
	Secrets *classads.Ad // the startd's secrets for this claim; may be nil
	Info    job.Info

	UID, GID int    // of the payload
	Home     string // of that user; empty if the pilot does not know the user
	Sandbox  *sandbox.Sandbox

	// Unpacked is the job's image if it is a file; nil otherwise.
	Unpacked *Unpacked
	// Contained is the image in which the machine's runtime runs the job; nil in a pod, and without an image.
	Contained *Contained

	// temporary is where programs of the job put temporary files; empty for the sandbox.
	temporary string
	mounts    *payload.Mounts // what the job has in place of the machine's; nil for none

	// Own is what the job's image runs by itself; nil if the job does not ask for it.
	Own *OwnCommand
	// ImageEnv are the variables of an image whose container was made with another one.
	ImageEnv []string

	// Given says what else the job is told of its place.
	Given func() Given
}

// OwnCommand is what an image runs by itself, by its configuration.
type OwnCommand struct {
	payload.ImageCommand
	// Unknown is why nobody knows it.
	Unknown error
}

// Given is what the job is given besides its ad and its place.
type Given struct {
	Tokens, Tickets, Proxy string // paths; see starter/credentials
	Chirp                  string // path of the file that condor_chirp reads; empty without a server
	WrapperWorks           bool   // USER_JOB_WRAPPER can be executed
	Run                    *Run   // of the main process; nil before the first
}

// FromImage says whether the command is one of the image's unless it was transferred.
// Container universe jobs with an image of a registry follow the same rules on a slot
// that has docker (starter.cpp:SpawnJob), which this slot claims to have.
func (j *Job) FromImage() bool {
	return j.Unpacked == nil && j.Contained == nil && (j.Ad.BoolOr("WantDocker", false) || j.Ad.BoolOr("WantContainer", false))
}

// rules are those by which the job's command is read.
func (j *Job) rules() job.Rules {
	switch {
	case j.Unpacked != nil, j.Contained != nil:
		return job.ApptainersRules
	case j.FromImage():
		return job.DockersRules
	}
	return job.PlainRules
}

// Place is where the job runs.
func (j *Job) Place() job.Place {
	return job.Place{FileTransfer: j.Info.FileTransfer, Scratch: j.Sandbox.Scratch(), Iwd: j.initialDir()}
}

// initialDir is where the job starts: its sandbox with file transfer, else the
// directory it was submitted from; RemoteIwd can name another.
func (j *Job) initialDir() string {
	dir := j.Info.Iwd
	if j.Info.FileTransfer {
		dir = j.Sandbox.Scratch()
	}
	switch remote := j.Info.RemoteIwd; {
	case remote == "":
		return dir
	case path.IsAbs(remote):
		return remote
	default:
		return filepath.Join(j.Sandbox.Scratch(), remote)
	}
}

// Surroundings is what the job's environment tells of its place. The sandbox has the
// same path in both containers, so nothing is translated.
func (j *Job) Surroundings() job.Surroundings {
	place, given := j.Place(), j.Given()
	home := j.Home
	if home == "" {
		// A payload's user has no entry in any passwd file; programs that
		// insist on a home find one that is theirs and goes with the job.
		home = place.Scratch
	}
	iwd := place.Iwd
	if j.Info.RemoteIwd != "" {
		iwd = j.Info.RemoteIwd // as written, even if relative to the sandbox
	}
	around := job.Surroundings{
		InPod: j.Settings.InPod(), Node: j.Info.Node, TmpDir: j.temporary,
		Scratch: place.Scratch, Iwd: iwd, FileTransfer: place.FileTransfer,
		Slot: j.Slot, StarterPID: os.Getpid(), Home: home,
		Machine: j.Machine, Secrets: j.Secrets, Environ: j.Environ, ChirpConfig: given.Chirp, WrapperWorks: given.WrapperWorks,
		CredDir: given.Tokens, KerberosCache: given.Tickets, Proxy: given.Proxy,
	}
	if r := given.Run; r != nil && r.Exit != nil {
		status := r.Status()
		around.Ended = &status
	} else if r != nil {
		around.PIDs = []int{r.Started.PID}
	}
	return around
}

// Published is the environment of programs of the site that run for the job: the
// starter's own, and what a job is told of its place.
func (j *Job) Published() ([]string, error) {
	env := job.NewEnv()
	if err := job.Publish(env, j.Ad, j.Settings.Config, j.Surroundings()); err != nil {
		return nil, fmt.Errorf("build the environment of a program of the site: %w", err)
	}
	return append(append([]string(nil), j.Environ...), env.Strings()...), nil
}

// Shown is the job's environment as HTCondor shows it, on one line.
func (j *Job) Shown() (string, error) {
	env, err := job.ShownEnvironment(j.Ad, j.Settings.Config, j.Surroundings())
	if err != nil {
		return "", fmt.Errorf("build the job's environment: %w", err)
	}
	return env.V2(), nil
}

// Main says what the main process is: its command, and the same in the words of the
// wrapper. under is the site's job wrapper, empty for none; run is the name of this run.
func (j *Job) Main(run, under string, hideEnv []string) (job.Command, payload.Spec, error) {
	place := j.Place()
	held := func(err error) (job.Command, payload.Spec, error) {
		return job.Command{}, payload.Spec{}, failure.New(shadow.HoldFailedToCreateProcess, 0, err)
	}
	cmd, err := j.command(place)
	if errors.Is(err, java.ErrNotConfigured) {
		return job.Command{}, payload.Spec{}, failure.New(shadow.VacateContainerError, 0, err)
	} else if err != nil {
		return held(err)
	}
	if cmd, err = j.inImage(cmd); errors.Is(err, payload.ErrPassing) {
		return job.Command{}, payload.Spec{}, failure.New(shadow.VacateContainerError, 0, err)
	} else if err != nil {
		return held(err)
	}
	env, err := job.Environment(j.Ad, j.Settings.Config, j.Surroundings())
	if err != nil {
		return held(fmt.Errorf("build the job's environment: %w", err))
	}
	limits, err := job.LimitsOf(j.Ad, j.Machine, j.Slot, j.Settings.Config)
	if err != nil {
		j.Log.Warn("A knob about limits is not understood, its default holds", "error", err)
	}
	target, err := j.targetDir()
	if err != nil {
		return held(err)
	}
	links, err := j.links(target)
	if err != nil {
		return held(err)
	}
	stdio := job.StdioOf(j.Ad, place)
	environ, started := target.retarget(env.Strings(), place.Iwd), cmd
	if j.Unpacked != nil {
		u, b := *j.Unpacked, binds{slot: j.Sandbox.Dir(), scratch: place.Scratch, home: place.FileTransfer, prompt: j.Machine.StringOr("Name", j.Slot) + "$ "}
		if target.at != "" {
			b.slot, b.scratch = target.at, target.at
			u.Path = strings.Replace(u.Path, target.to, target.at, 1)
		}
		if started, environ, err = u.launch(cmd, environ, b); err != nil {
			return held(err)
		}
		hideEnv = append(hideEnv[:len(hideEnv):len(hideEnv)], "HOSTNAME") // the runtime's
		if cmd.Path == "" {
			cmd.Path = runscript
		}
	}
	if j.Contained != nil {
		if cmd, environ, err = j.contain(cmd, environ); err != nil {
			return job.Command{}, payload.Spec{}, err
		}
		started = cmd
	}
	if under != "" {
		cmd, started = cmd.Wrap(under), started.Wrap(under)
	}
	return cmd, payload.Spec{
		Activation: run,
		UID:        j.UID, GID: j.GID, Groups: groupsOf(j.UID, j.GID),
		Path: started.Path, Args: append([]string{started.Path}, started.Args...), SearchPath: started.Search,
		Links: links,
		Env:   j.OverImage(environ), ImageEnv: j.Settings.InPod(), HideEnv: hideEnv,
		Dir: place.Iwd, Umask: Umask,
		Stdin: openable(stdio.In), Stdout: openable(stdio.Out), Stderr: openable(stdio.Err), Append: stdio.Append,
		Nice: limits.Nice, CPUs: limits.CPUs, Limits: append(rlimits(limits), j.taskLimit()...), MaxTasks: j.Settings.MaxTasks,
	}, nil
}

// OverImage lays variables over those of the image, which give way.
func (j *Job) OverImage(env []string) []string {
	return append(j.ImageEnv[:len(j.ImageEnv):len(j.ImageEnv)], env...)
}

// inImage adds the image's own command to the job's. Where it is not known, the job's alone runs.
func (j *Job) inImage(cmd job.Command) (job.Command, error) {
	switch {
	case j.Unpacked != nil, j.Contained != nil:
		return cmd, nil
	case j.Own != nil && j.Own.Unknown == nil:
		return cmd.InImage(j.Own.Entrypoint, j.Own.Cmd)
	case cmd.Path != "":
		return cmd, nil
	}
	why := errors.New("nobody asks registries for the image with which the pod was made, or for any at this site")
	if j.Own != nil {
		why = j.Own.Unknown
	}
	return cmd, fmt.Errorf("the job names no executable, and the image's own is not known: %w; name it in the submit file: executable = /path/in/the/image, transfer_executable = false", why)
}

// openable is the path of a standard file for the wrapper, which takes none for the
// null device. One that is streamed is not on this machine.
func openable(f job.File) string {
	if f.Path == os.DevNull || f.Stream {
		return ""
	}
	return f.Path
}
