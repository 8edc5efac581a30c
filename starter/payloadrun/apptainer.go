package payloadrun

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"podstarter/condor/job"
	"podstarter/payload"
	"podstarter/payload/imagetree"
)

// Unpacked is an image that is a file, and whose files the container has. The job starts in it
// as Apptainer starts a program, since such images were built for Apptainer.
type Unpacked struct {
	Name string // the last part of Path
	Path string // where Apptainer would find the image
	// NoShell says that the image has no shell, so that nothing of its environment is known.
	NoShell bool
}

const (
	shell     = "/bin/sh"
	runscript = "/.singularity.d/runscript"
	libraries = "/.singularity.d/libs" // of GPUs, as Apptainer mounts them
	// environmentScripts is the directory of an image's scripts for the environment.
	environmentScripts = "/.singularity.d/env"
	// inShell runs a script by bash if the image has it, since Apptainer's own interpreter takes
	// what bash takes; -p keeps BASH_ENV from being read.
	inShell = `if [ -x /bin/bash ]; then exec /bin/bash -p -c "$@"; fi; exec /bin/sh -c "$@"`
	// takeEnvironment sets the image's variables, and after them the job's: HTCondor makes them
	// win (singularity.cpp:Singularity::convertEnv). Their names are the first $1 arguments, and their
	// values in variables with a prefix, since anybody in the pod may read arguments. A function, so
	// that no script can change the arguments. Apptainer's own directories are always in PATH, and
	// SHLVL is not the job's; bash gives it one of 0 nevertheless. What a shell does not let anybody set
	// stays.
	takeEnvironment = `__take() { for __f in ` + environmentScripts + `/*.sh; do if [ -f "$__f" ]; then . "$__f"; fi; done
for __f in /usr/local/sbin /usr/local/bin /usr/sbin /usr/bin /sbin /bin; do case ":$PATH:" in *":$__f:"*) ;; *) PATH="$PATH:$__f" ;; esac; done; }
__take
PATH="${` + prepend + `:+$` + prepend + `:}$PATH${` + appended + `:+:$` + appended + `}"
unset SHLVL ` + prepend + ` ` + appended + `
__n=$1; shift
while [ "$__n" -gt 0 ]; do eval "command export $1=\"\$` + valueOf + `$1\"" 2>/dev/null || :; unset ` + valueOf + `$1; shift; __n=$((__n - 1)); done
unset __n __f
`
	// valueOf begins the name of a variable with the value that another is to have.
	valueOf = "__value_"
	// prepend and appended are what comes into PATH before and after the image's directories
	// (Apptainer's action_scripts.go:RuntimeVars).
	prepend, appended = "__prepend", "__append"
	// execute starts a program as "apptainer exec" does, and run the image's own as "apptainer
	// run" does.
	execute = `exec "$@"`
	run     = `if [ -x ` + runscript + ` ]; then exec ` + runscript + ` "$@"; fi
if [ -x /singularity ]; then exec /singularity "$@"; fi
exec /bin/sh "$@"`
)

// binds are the directories that Apptainer mounts into the container for a job.
type binds struct {
	slot    string // the job's directory
	scratch string // its sandbox, by the name that it has for the job
	home    bool   // the sandbox is also the job's home
	prompt  string // of a shell
}

// launch gives the command that starts c in such an image, and its variables. A command
// without a path is the image's own.
func (u Unpacked) launch(c job.Command, env []string, b binds) (job.Command, []string, error) {
	env = u.environment(env, c.Path == "", b)
	if u.NoShell {
		if c.Path == "" {
			return c, nil, fmt.Errorf("the job names no executable, and the image's own cannot run, since the image has no %s; name one in the submit file", shell)
		}
		return c, slices.DeleteFunc(env, func(entry string) bool {
			return strings.HasPrefix(entry, prepend+"=") || strings.HasPrefix(entry, appended+"=")
		}), nil
	}
	script, args := takeEnvironment+run, c.Args
	if c.Path != "" {
		script, args = takeEnvironment+execute, append([]string{c.Path}, c.Args...)
	}
	var names []string
	for _, entry := range env {
		if name, value, _ := strings.Cut(entry, "="); settable.MatchString(name) && name != "PWD" && !strings.HasPrefix(name, "__") {
			names, env = append(names, name), append(env, valueOf+name+"="+value)
		}
	}
	c.Args = append(append([]string{"-c", inShell, shell, script, shell, strconv.Itoa(len(names))}, names...), args...)
	c.Path, c.Search = shell, false
	return c, env, nil
}

// settable is the name of a variable that a shell can set.
var settable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// environment is what Apptainer makes of a job's variables. Those by which a job would give
// options to Apptainer are left out, as in stock (singularity.cpp), those that say what a
// variable is to be inside are obeyed, and those of the processes outside do not come in.
func (u Unpacked) environment(env []string, runs bool, b binds) []string {
	out := make(map[string]string)
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		switch {
		case isOption(name), strings.HasPrefix(name, "_CONDOR_ANCESTOR_"), name == "HOME" && b.home:
		default:
			out[name] = value
		}
	}
	set := func(name, value string) { out[name] = value }
	if _, ok := out["LANG"]; !ok {
		set("LANG", "C")
	}
	if b.home {
		set("HOME", b.scratch)
	}
	// A shell that somebody uses in the job says where it is.
	set("PS1", b.prompt)
	set("PROMPT_COMMAND", `PS1="`+b.prompt+`"; unset PROMPT_COMMAND`)
	if own, ok := out["LD_LIBRARY_PATH"]; ok {
		set("LD_LIBRARY_PATH", own+":"+libraries)
	}
	set("APPTAINER_APPNAME", "")
	set("APPTAINER_CACHEDIR", b.scratch)
	set("APPTAINER_TMPDIR", b.scratch)
	set("APPTAINER_COMMAND", "exec")
	if runs {
		set("APPTAINER_COMMAND", "run")
	}
	for _, maker := range makers {
		set(maker+"_BIND", b.slot)
		set(maker+"_CONTAINER", u.Path)
		set(maker+"_ENVIRONMENT", environmentScripts+"/91-environment.sh")
		set(maker+"_NAME", u.Name)
	}
	for _, entry := range env {
		for _, maker := range makers {
			if inside, ok := strings.CutPrefix(entry, maker+"ENV_"); ok {
				name, value, _ := strings.Cut(inside, "=")
				switch name {
				case "PREPEND_PATH":
					name = prepend
				case "APPEND_PATH":
					name = appended
				}
				set(name, value)
			}
		}
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(out)) {
		list = append(list, name+"="+out[name])
	}
	return list
}

// makers are the beginnings of Apptainer's variables: its own name, and its older one.
var makers = []string{"APPTAINER", "SINGULARITY"}

// isOption tells whether a variable is for Apptainer itself.
func isOption(name string) bool {
	return slices.ContainsFunc(makers, func(maker string) bool {
		return strings.HasPrefix(name, maker+"_") || strings.HasPrefix(name, maker+"ENV_")
	})
}

// Account is the user that an image gets for the job, whose name is the slot's user in the
// pilot if that has one.
func (j *Job) Account() imagetree.Account {
	name, _ := AccountOf(j.UID)
	if name == "" {
		name = "job"
	}
	home := j.Home
	if home == "" || j.Info.FileTransfer {
		home = j.Sandbox.Scratch()
	}
	return imagetree.Account{Name: name, UID: j.UID, GID: j.GID, Home: home}
}

// LacksShell says whether a start failed because the image has no shell.
func (u *Unpacked) LacksShell(err error) bool {
	s := (*payload.StartError)(nil)
	return u != nil && !u.NoShell && errors.As(err, &s) && s.Stage == payload.StageExec && s.Errno == syscall.ENOENT && s.Path == shell
}
