package job

import (
	"errors"
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

// Rules are those of the program that would run the job in stock.
type Rules int

const (
	// PlainRules: the job's program is on the machine, or was transferred.
	PlainRules Rules = iota
	// DockersRules: a command that is not transferred belongs to the image.
	DockersRules
	// ApptainersRules are the plain ones, but the image's own command runs if there is
	// none.
	ApptainersRules
)

// CommandOf returns the command to execute
// (condor_starter.V6.1/os_proc.cpp:OsProc::canonicalizeJobPath,
// docker_proc.cpp:DockerProc::LaunchContainer).
func CommandOf(ad *classads.Ad, p Place, rules Rules) (Command, error) {
	docker := rules == DockersRules
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
	case cmd == "" && rules != PlainRules:
		// The image's own command runs.
	case cmd == "":
		return Command{}, fmt.Errorf("attribute Cmd is empty; only a job with an image can leave out what to run")
	case path.IsAbs(cmd):
	case docker, !wanted && ad.BoolOr("PreserveRelativeExecutable", false):
		// It is the image's programs that docker and Apptainer look for in PATH. Without either, stock looks nowhere.
		c.Search = rules != PlainRules && !strings.Contains(cmd, "/")
	default:
		c.Path = p.Iwd + "/" + cmd
	}
	return c, nil
}

// InImage is the command by docker's rules, given the image's ENTRYPOINT and CMD: the entry point comes
// first, and the image's own arguments stand where the job says nothing (docker's Dockerfile reference,
// "Understand how CMD and ENTRYPOINT interact"; docker_proc.cpp:DockerProc::LaunchContainer leaves them
// to docker).
func (c Command) InImage(entrypoint, cmd []string) (Command, error) {
	if c.Entrypoint {
		return c, nil
	}
	if len(entrypoint) == 1 && entrypoint[0] == "" {
		entrypoint = nil // a Dockerfile's way to have none; docker takes it so
	}
	words := append([]string(nil), entrypoint...)
	switch {
	case c.Path != "":
		if len(words) == 0 {
			return c, nil
		}
		words = append(append(words, c.Path), c.Args...)
	case len(c.Args) > 0:
		words = append(words, c.Args...)
	default:
		words = append(words, cmd...)
	}
	switch {
	case len(words) > 0 && words[0] == "":
		return Command{}, errors.New("the program in the image's ENTRYPOINT or CMD is the empty word; docker_override_entrypoint = true leaves ENTRYPOINT out")
	case len(words) == 0:
		return Command{}, errors.New("the job names no executable, and its image has neither ENTRYPOINT nor CMD; name one in the submit file: executable = /path/in/the/image, transfer_executable = false")
	}
	return Command{Path: words[0], Args: words[1:], Search: !strings.Contains(words[0], "/")}, nil
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
