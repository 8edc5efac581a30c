package job

import (
	"fmt"
	"path"
	"strings"

	"podstarter/classads"
)

// Place is where a job runs.
type Place struct {
	FileTransfer bool
	Scratch      string // the sandbox, as the job sees it
	Iwd          string // its initial directory
}

// Command is what is executed.
type Command struct {
	// Path is the program, and argv[0]. It is empty if the container's image
	// says what to run.
	Path string
	Args []string // behind argv[0]
	// Search says that Path is a name to look up in PATH, as for a command
	// that the image brings.
	Search bool
	// Transferred says that Path is in the sandbox.
	Transferred bool
	// Entrypoint says that Path replaces the image's entry point; otherwise,
	// under the rules of docker, it is the entry point's first argument.
	Entrypoint bool
}

// CommandOf finds out what to execute
// (condor_starter.V6.1/os_proc.cpp:OsProc::canonicalizeJobPath,
// docker_proc.cpp:DockerProc::LaunchContainer). With docker rules, a command
// that is not transferred is one of the image's.
func CommandOf(ad *classads.Ad, p Place, docker bool) (Command, error) {
	cmd, err := ad.GetString(attrCmd)
	if err != nil {
		return Command{}, fmt.Errorf("the job does not say what to run: %w", err)
	}
	c := Command{Path: cmd}
	if c.Args, err = Arguments(ad); err != nil {
		return Command{}, err
	}
	wanted := ad.BoolOr("TransferExecutable", true)
	transfer := p.FileTransfer && wanted
	if docker {
		c.Entrypoint = cmd != "" && ad.BoolOr("DockerOverrideEntrypoint", false)
		if ad.BoolOr("InteractiveJob", false) {
			c.Args = append(c.Args, interactiveSeconds)
		}
	}
	switch {
	case transfer && cmd != "":
		name := basename(cmd)
		if name == "" || name == "." || name == ".." {
			return Command{}, fmt.Errorf("attribute Cmd: %s does not name a file", excerpt(cmd))
		}
		c.Transferred = true
		if docker {
			c.Path = "./" + name
		} else {
			c.Path = path.Join(p.Scratch, name)
		}
	case cmd == "" && docker:
		// The image's own command runs.
	case cmd == "":
		return Command{}, fmt.Errorf("attribute Cmd is empty; only a job with an image can leave out what to run")
	case path.IsAbs(cmd):
	case docker, !wanted && ad.BoolOr("PreserveRelativeExecutable", false):
		c.Search = !strings.Contains(cmd, "/")
	default:
		c.Path = p.Iwd + "/" + cmd
	}
	return c, nil
}

// interactiveSeconds is appended to the arguments of an interactive docker
// job, whose command is a sleep.
const interactiveSeconds = "86400"

// Wrap puts the program of USER_JOB_WRAPPER before a command: the wrapper is
// executed and finds the job's program and arguments in its own.
func (c Command) Wrap(wrapper string) Command {
	c.Args = append([]string{c.Path}, c.Args...)
	c.Path, c.Search, c.Transferred = wrapper, false, false
	return c
}
