package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Process is one process as this machine sees it, with its number here. Processes
// of pods are among them.
type Process struct {
	PID       int
	Parent    int
	Inner     int // its number in the innermost namespace, as its pod sees it
	UID       int // real user id, in its pod's user namespace if the pod has one
	Comm      string
	Args      []string
	VmHWM     int64  // peak resident memory in KiB
	Namespace string // of processes, as /proc/PID/ns/pid names it, if it may be known
	Pod       string // uid of its pod, by its control group; empty outside of pods
}

// podPattern finds the pod in the path of a control group, as the kubelet names it.
var podPattern = regexp.MustCompile(`/pod([0-9a-f]{8}-[0-9a-f-]{27})/`)

// String names the process for a message.
func (p Process) String() string {
	return fmt.Sprintf("%d %s (uid %d) %q", p.PID, p.Comm, p.UID, p.Args)
}

// Processes lists the processes of this machine that keep selects. Zombies are left
// out: they no longer run.
func Processes(keep func(Process) bool) ([]Process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("listing processes: %w", err)
	}
	var found []Process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		process, err := ReadProcess(pid)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue // it went while we looked
		}
		if err != nil {
			return nil, err
		}
		if keep(process) {
			found = append(found, process)
		}
	}
	return found, nil
}

// ReadProcess reads one process of this machine. If it is gone or a zombie, the
// error wraps os.ErrNotExist or unix.ESRCH.
func ReadProcess(pid int) (Process, error) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	status, err := os.ReadFile(filepath.Join(dir, "status"))
	if err != nil {
		return Process{}, fmt.Errorf("reading process %d: %w", pid, err)
	}
	process := Process{PID: pid}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		fields := strings.Fields(value)
		if len(fields) == 0 {
			continue
		}
		switch name {
		case "Name":
			process.Comm = strings.TrimSpace(value)
		case "State":
			if fields[0] == "Z" || fields[0] == "X" {
				return Process{}, fmt.Errorf("process %d has ended: %w", pid, unix.ESRCH)
			}
		case "Uid":
			process.UID, err = strconv.Atoi(fields[0])
		case "PPid":
			process.Parent, err = strconv.Atoi(fields[0])
		case "NSpid":
			process.Inner, err = strconv.Atoi(fields[len(fields)-1])
		case "VmHWM":
			process.VmHWM, err = strconv.ParseInt(fields[0], 10, 64)
		}
		if err != nil {
			return Process{}, fmt.Errorf("reading %q of process %d: %w", strings.TrimSpace(line), pid, err)
		}
	}
	if process.UID, err = innerUID(dir, process.UID); err != nil {
		return Process{}, fmt.Errorf("reading process %d: %w", pid, err)
	}
	// Some processes of a machine are protected even from root; none of a pod is.
	if process.Namespace, err = os.Readlink(filepath.Join(dir, "ns", "pid")); err != nil && !errors.Is(err, os.ErrPermission) {
		return Process{}, fmt.Errorf("reading process %d: %w", pid, err)
	}
	groups, err := os.ReadFile(filepath.Join(dir, "cgroup"))
	if err != nil {
		return Process{}, fmt.Errorf("reading process %d: %w", pid, err)
	}
	if m := podPattern.FindSubmatch(groups); m != nil {
		process.Pod = string(m[1])
	}
	command, err := os.ReadFile(filepath.Join(dir, "cmdline"))
	if err != nil {
		return Process{}, fmt.Errorf("reading process %d: %w", pid, err)
	}
	if command = bytes.TrimSuffix(command, []byte{0}); len(command) > 0 {
		process.Args = strings.Split(string(command), "\x00")
	}
	return process, nil
}

// firstMapped is the first user id that the kubelet gives to user namespaces (KEP-127).
const firstMapped = 1 << 16

// innerUID is a user id in the process's own user namespace (user_namespaces(7)).
func innerUID(dir string, uid int) (int, error) {
	if uid < firstMapped {
		return uid, nil
	}
	ranges, err := os.ReadFile(filepath.Join(dir, "uid_map"))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(ranges)) {
		var inner, outer, n int
		if _, err := fmt.Sscan(line, &inner, &outer, &n); err != nil {
			return 0, fmt.Errorf("reading its uid_map: %w", err)
		}
		if uid >= outer && uid < outer+n {
			return inner + uid - outer, nil
		}
	}
	return uid, nil
}

// Env is the environment with which a process was started.
func (p Process) Env() ([]string, error) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID), "environ"))
	if err != nil {
		return nil, fmt.Errorf("reading the environment of process %v: %w", p, err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00"), nil
}

// Eldest leaves out processes whose parent is one of them too: for a moment, a
// shell's child looks like the shell.
func Eldest(some []Process) []Process {
	return slices.DeleteFunc(slices.Clone(some), func(p Process) bool {
		return slices.ContainsFunc(some, func(q Process) bool { return q.PID == p.Parent })
	})
}

// WaitNone returns when keep selects no process any more: it waits for the end of
// the remaining ones through their pidfds. If the context ends first, the error
// names them.
func WaitNone(ctx context.Context, keep func(Process) bool) error {
	for {
		left, err := Processes(keep)
		if err != nil || len(left) == 0 {
			return err
		}
		if err := waitExit(ctx, left[0].PID); err != nil {
			if ctx.Err() == nil {
				return err
			}
			left, _ = Processes(keep)
			return fmt.Errorf("still running: %v: %w", left, context.Cause(ctx))
		}
	}
}

// WaitSome returns the processes that keep selects as soon as there are at least n.
func WaitSome(ctx context.Context, n int, keep func(Process) bool) ([]Process, error) {
	var found []Process
	// Looking at all processes of a machine takes some ten milliseconds, and many
	// tests may wait at once.
	err := poll(ctx, fmt.Sprintf("%d processes", n), 250*time.Millisecond, func() (bool, error) {
		var err error
		found, err = Processes(keep)
		return len(found) >= n, err
	})
	return found, err
}

// Kill sends a signal to a process that was found here, through a pidfd and only if
// its number still means the same process.
func Kill(process Process, signal unix.Signal) error {
	fd, err := unix.PidfdOpen(process.PID, 0)
	if err != nil {
		return fmt.Errorf("opening process %v: %w", process, err)
	}
	defer unix.Close(fd)
	now, err := ReadProcess(process.PID)
	if err != nil {
		return err
	}
	if now.Comm != process.Comm || now.UID != process.UID {
		return fmt.Errorf("process %v is %v by now", process, now)
	}
	if err := unix.PidfdSendSignal(fd, signal, nil, 0); err != nil {
		return fmt.Errorf("sending signal %d to %v: %w", signal, process, err)
	}
	return nil
}

// Stop stops a process, and returns when all its threads have stopped: until then the
// ones may go on while the others have yet to run to take the signal.
func Stop(ctx context.Context, process Process) error {
	if err := Kill(process, unix.SIGSTOP); err != nil {
		return err
	}
	threads := filepath.Join("/proc", strconv.Itoa(process.PID), "task")
	return Poll(ctx, fmt.Sprintf("all threads of %v to stop", process), func() (bool, error) {
		states, err := filepath.Glob(filepath.Join(threads, "*", "stat"))
		if err != nil {
			return false, err
		}
		for _, path := range states {
			stat, err := os.ReadFile(path)
			if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
				continue // this one has ended
			}
			if err != nil {
				return false, fmt.Errorf("reading the state of a thread: %w", err)
			}
			// The name before it may contain anything.
			if _, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" ")); !bytes.HasPrefix(state, []byte("T")) {
				return false, nil
			}
		}
		return len(states) > 0, nil
	})
}

// waitExit returns once the process has ended, a zombie included.
func waitExit(ctx context.Context, pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	for ctx.Err() == nil {
		// Short waits, so that it notices the end of the context.
		const turn = 100 * time.Millisecond
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(turn.Milliseconds()))
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("waiting for process %d: %w", pid, err)
		}
		if n > 0 {
			return nil
		}
	}
	return context.Cause(ctx)
}

// killTree kills a process and all that it has started: a shell that waits for something in
// a loop would go on for ever.
func killTree(pid int) error {
	all, err := Processes(func(Process) bool { return true })
	children := make(map[int][]int)
	for _, p := range all {
		children[p.Parent] = append(children[p.Parent], p.PID)
	}
	// The eldest first, while the others still have it as their parent: nobody starts more.
	for left := []int{pid}; len(left) > 0; left = append(left[1:], children[left[0]]...) {
		if kerr := unix.Kill(left[0], unix.SIGKILL); kerr != nil && !errors.Is(kerr, unix.ESRCH) {
			err = errors.Join(err, fmt.Errorf("killing process %d: %w", left[0], kerr))
		}
	}
	return err
}
