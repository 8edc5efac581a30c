package enter

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Command is what to run in a container.
type Command struct {
	Args []string
	// User is a name of the container's /etc/passwd whose environment and home directory the command gets; "" means root
	// with the container's own environment, in /.
	User string
	// Own says that the command runs as the user and with the groups of the container's first process, and not as root.
	Own bool
}

// Run runs the command with this process's standard streams and returns its exit code; 128 plus the signal's number if a
// signal ended it. The command has the container's namespaces, root directory and capabilities at most; it dies with the
// calling process.
//
// The calling goroutine's thread is changed for good: use it once in a process, as the last thing.
func (c Container) Run(cmd Command) (int, error) {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return 0, fmt.Errorf("opening this program: %w", err)
	}
	defer self.Close()
	switch own, err := c.ownUsers(); {
	case err != nil:
		return 0, fmt.Errorf("entering the container %s of %s: %w", c.Name, c.Pod, err)
	case own && (cmd.User != "" || cmd.Own):
		return 0, fmt.Errorf("entering the container %s of %s: it has a user namespace, so only root can", c.Name, c.Pod)
	case own:
		return c.runMapped(cmd, self)
	}
	attr := &syscall.SysProcAttr{}
	if cmd.Own {
		if attr.Credential, err = c.credential(); err != nil {
			return 0, fmt.Errorf("asking whose the container %s of %s is: %w", c.Name, c.Pod, err)
		}
	}
	runtime.LockOSThread()
	if err := c.join(); err != nil {
		return 0, fmt.Errorf("entering the container %s of %s: %w", c.Name, c.Pod, err)
	}
	return run(cmd, attr, c.Env, self)
}

// ownUsers says whether the container has another user namespace than this process.
func (c Container) ownUsers() (bool, error) {
	here, err := os.Readlink("/proc/self/ns/user")
	if err != nil {
		return false, err
	}
	there, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/user", c.PID))
	return there != here, err
}

// runMapped runs the command by nsenter(1): a process with several threads, as any of Go is, cannot join a user namespace
// (setns(2)).
func (c Container) runMapped(cmd Command, self *os.File) (int, error) {
	bounding, err := boundingSet(c.PID)
	if err != nil {
		return 0, err
	}
	args := append([]string{"--target=" + strconv.Itoa(c.PID), "--ipc", "--uts", "--net", "--pid", "--mount", "--user", "--wdns=/",
		"/proc/self/fd/3", Verb, boundingOption + strconv.FormatUint(bounding, 16)}, cmd.Args...)
	child := exec.Command("nsenter", args...)
	child.ExtraFiles = []*os.File{self}
	child.Env = c.Env
	child.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // or the signal may come when this thread ends
	return wait(child)
}

// join moves this thread into the container. Children inherit its namespaces, its root directory and its bounding set.
func (c Container) join() error {
	bounding, err := boundingSet(c.PID)
	if err != nil {
		return err
	}
	// The mount namespace comes last: after that, /proc is the container's.
	kinds := []struct {
		name string
		flag int
	}{{"ipc", unix.CLONE_NEWIPC}, {"uts", unix.CLONE_NEWUTS}, {"net", unix.CLONE_NEWNET}, {"pid", unix.CLONE_NEWPID}, {"mnt", unix.CLONE_NEWNS}}
	fds := make([]int, len(kinds))
	for i, k := range kinds {
		fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/%s", c.PID, k.name), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("opening its %s namespace: %w", k.name, err)
		}
		defer unix.Close(fd)
		fds[i] = fd
	}
	// A thread that shares its root and working directory with others may not change its mount namespace (setns(2)).
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unsharing the working directory: %w", err)
	}
	for i, k := range kinds {
		if err := unix.Setns(fds[i], k.flag); err != nil {
			return fmt.Errorf("joining its %s namespace: %w", k.name, err)
		}
	}
	unix.Umask(0o022)
	return limitBounding(bounding)
}

// limitBounding leaves this thread only these capabilities in its bounding set.
func limitBounding(set uint64) error {
	for capability := range 64 {
		if set&(1<<capability) != 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(capability), 0, 0, 0); errors.Is(err, unix.EINVAL) {
			break // past the last capability that this kernel knows
		} else if err != nil {
			return fmt.Errorf("dropping the capability %d: %w", capability, err)
		}
	}
	return nil
}

// credential is the real user and group, and the other groups, of the container's first process.
func (c Container) credential() (*syscall.Credential, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.PID))
	if err != nil {
		return nil, err
	}
	return parseCredential(string(text))
}

func parseCredential(status string) (*syscall.Credential, error) {
	ids := map[string][]uint32{}
	for line := range strings.Lines(status) {
		name, values, _ := strings.Cut(line, ":")
		if name != "Uid" && name != "Gid" && name != "Groups" {
			continue
		}
		for _, value := range strings.Fields(values) {
			id, err := strconv.ParseUint(value, 10, 32)
			if err != nil {
				return nil, fmt.Errorf("reading %q: %w", line, err)
			}
			ids[name] = append(ids[name], uint32(id))
		}
	}
	if len(ids["Uid"]) == 0 || len(ids["Gid"]) == 0 {
		return nil, errors.New("no user or group in its status")
	}
	return &syscall.Credential{Uid: ids["Uid"][0], Gid: ids["Gid"][0], Groups: ids["Groups"]}, nil
}

// boundingSet is the capability bounding set of a process (capabilities(7)).
func boundingSet(pid int) (uint64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if v, ok := strings.CutPrefix(line, "CapBnd:"); ok {
			return strconv.ParseUint(strings.TrimSpace(v), 16, 64)
		}
	}
	return 0, errors.New("no CapBnd in its status")
}

// A user is a line of passwd(5).
type user struct {
	name, home, shell string
	uid, gid          uint32
}

func findUser(passwd, name string) (user, error) {
	for line := range strings.Lines(passwd) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) != 7 || f[0] != name {
			continue
		}
		uid, err := strconv.ParseUint(f[2], 10, 32)
		if err != nil {
			return user{}, fmt.Errorf("the user %s has no numeric uid: %w", name, err)
		}
		gid, err := strconv.ParseUint(f[3], 10, 32)
		if err != nil {
			return user{}, fmt.Errorf("the user %s has no numeric gid: %w", name, err)
		}
		return user{name: name, home: f[5], shell: f[6], uid: uint32(uid), gid: uint32(gid)}, nil
	}
	return user{}, fmt.Errorf("the container has no user %s", name)
}

// path is the PATH of ordinary users.
const path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

func run(cmd Command, attr *syscall.SysProcAttr, env []string, self *os.File) (int, error) {
	dir := "/"
	if cmd.User != "" {
		passwd, err := os.ReadFile("/etc/passwd")
		if err != nil {
			return 0, fmt.Errorf("looking up the user %s: %w", cmd.User, err)
		}
		u, err := findUser(string(passwd), cmd.User)
		if err != nil {
			return 0, err
		}
		attr.Credential = &syscall.Credential{Uid: u.uid, Gid: u.gid, Groups: []uint32{u.gid}}
		dir = u.home
		env = []string{"PATH=" + path, "HOME=" + u.home, "USER=" + u.name, "LOGNAME=" + u.name, "SHELL=" + u.shell, "LANG=C.UTF-8"}
	}
	if err := os.Chdir(dir); err != nil {
		return 0, fmt.Errorf("changing to %s: %w", dir, err)
	}
	// The descriptor is number 3 of the child, by which it finds the program whatever the container's root holds.
	child := exec.Command("/proc/self/fd/3", append([]string{Verb}, cmd.Args...)...)
	child.ExtraFiles = []*os.File{self}
	child.Env, child.Dir, child.SysProcAttr = env, dir, attr
	return wait(child)
}

// wait runs a child with this process's standard streams and signals; see [Container.Run] for what it returns.
func wait(child *exec.Cmd) (int, error) {
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	if err := child.Start(); err != nil {
		return 0, fmt.Errorf("starting %s: %w", strings.Join(child.Args, " "), err)
	}
	go func() {
		for s := range signals {
			_ = child.Process.Signal(s)
		}
	}()
	err := child.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case !errors.As(err, &exit):
		return 0, err
	}
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return exit.ExitCode(), nil
}

// Verb is the program's own verb under which Run starts it again inside of the container; the program's main must hand it
// to Exec.
const Verb = "exec-inside"

// boundingOption begins an argument with the capabilities that the command may have, as a hexadecimal mask.
const boundingOption = "--bounding="

// Exec is the body of the program's verb Verb: it becomes the command, which then dies with the process that called
// Run, so that an interrupted test leaves no commands to the next. syscall.SysProcAttr.Pdeathsig cannot do this,
// because it looks for its parent by a number that the container's process namespace does not have.
func Exec(args []string) error {
	if len(args) > 0 && strings.HasPrefix(args[0], boundingOption) {
		set, err := strconv.ParseUint(strings.TrimPrefix(args[0], boundingOption), 16, 64)
		if err != nil {
			return fmt.Errorf("reading %s: %w", args[0], err)
		}
		runtime.LockOSThread()
		unix.Umask(0o022)
		if err := limitBounding(set); err != nil {
			return err
		}
		args = args[1:]
	}
	if len(args) == 0 {
		return errors.New("usage: " + Verb + " PROGRAM ARG…")
	}
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("asking for a signal at the parent's end: %w", err)
	}
	// A parent outside of the namespace has the number 0; another one means that it has already ended.
	if os.Getppid() != 0 {
		return errors.New("the calling process has ended")
	}
	program, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	unix.CloseOnExec(3)
	return fmt.Errorf("%s: %w", program, syscall.Exec(program, args, os.Environ()))
}
