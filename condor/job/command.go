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
	// Path is the program, and argv[0]. It is empty if the container image
	// decides what to run.
	Path string
	Args []string // after argv[0]
	// Search: Path is a name to look up in PATH, for a program of the container
	// image.
	Search bool
	// Transferred: Path is in the sandbox.
	Transferred bool
	// Entrypoint: Path replaces the image's entry point; otherwise, by docker's
	// rules, it is the entry point's first argument.
	Entrypoint bool
}

// CommandOf returns the command to execute
// (condor_starter.V6.1/os_proc.cpp:OsProc::canonicalizeJobPath,
// docker_proc.cpp:DockerProc::LaunchContainer). By docker's rules, a command that
// is not transferred belongs to the image.
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

// interactiveSeconds is appended to the arguments of an interactive docker job,
// whose command is sleep.
const interactiveSeconds = "86400"

// Wrap puts the program of USER_JOB_WRAPPER before a command: the wrapper gets
// the job's program and arguments as its own arguments and executes them.
func (c Command) Wrap(wrapper string) Command {
	c.Args = append([]string{c.Path}, c.Args...)
	c.Path, c.Search, c.Transferred = wrapper, false, false
	return c
}
