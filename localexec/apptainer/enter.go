package apptainer

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// Inside is the environment that the runtime makes of c's, as far as it comes from the job, for a process that enters the
// job's image later.
func (c Command) Inside(r Runtime) []string {
	var env []string
	for _, entry := range c.Env {
		if inside, ok := strings.CutPrefix(entry, r.prefix()); ok && !isOption(inside) {
			env = append(env, inside)
		}
	}
	if i := slices.Index(c.Args, "--home"); i >= 0 {
		env = append(env, "HOME="+c.Args[i+1])
	}
	return env
}

// Beside is the command, with argv[0], and the environment by which a script of /bin/sh runs in the same image when nothing of the job
// runs in it any more: in a container of its own. env is that inside.
func (c Command) Beside(r Runtime, env []string, script string, args ...string) (argv, whole []string) {
	whole = slices.Clone(c.Env)
	for _, entry := range env {
		if !strings.HasPrefix(entry, "HOME=") {
			whole = append(whole, r.prefix()+entry)
		}
	}
	return slices.Concat([]string{c.Path}, c.Again, []string{"/bin/sh", "-c", script, "sh"}, args), whole
}

// enterProgram joins the namespaces of a process; it is util-linux's.
const enterProgram = "/usr/bin/nsenter"

// Enter is the command, with argv[0], by which the job's user runs a script of /bin/sh in the image in which a process runs
// (os_proc.cpp:OsProc::AcceptSingSshClient, which takes a program of HTCondor's). args are $1 and so on. It needs no right but
// that the user made the namespaces, and gives none.
func (s Site) Enter(process int, script string, args ...string) []string {
	namespaces := []string{"--user", "--mount", "--ipc"}
	if s.PIDNamespaces {
		namespaces = append(namespaces, "--pid")
	}
	return slices.Concat([]string{enterProgram, "--preserve-credentials"}, namespaces,
		[]string{"--target", strconv.Itoa(process), "--", "/bin/sh", "-c", script, "sh"}, args)
}

// fileSystems begin the names of the programs by which Apptainer shows an image.
var fileSystems = []string{"squashfuse", "fuse2fs", "fuse-overlayfs", "fusermount", "gocryptfs"}

// InImage finds a process that runs in the image, given the runtime's own: its child that is no file system. proc is
// where /proc is.
func InImage(proc string, runtime int) (int, error) {
	children, err := os.ReadFile(fmt.Sprintf("%s/%d/task/%d/children", proc, runtime, runtime))
	if err != nil {
		return 0, fmt.Errorf("find the job's processes in its image: %w", err)
	}
	for _, child := range strings.Fields(string(children)) {
		name, err := os.ReadFile(proc + "/" + child + "/comm")
		if err != nil || slices.ContainsFunc(fileSystems, func(one string) bool { return strings.HasPrefix(string(name), one) }) {
			continue
		}
		return strconv.Atoi(child)
	}
	return 0, fmt.Errorf("find the job's processes in its image: process %d, which is the runtime's, has none", runtime)
}
