package agent

import (
	"path"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"podstarter/payload"
)

// defaultPath is searched when the payload's environment has no PATH: container runtimes
// use it for images that set none.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// candidates lists the paths to try, as execvp(3) does.
func candidates(s *payload.Spec, name string) []string {
	if !s.SearchPath || strings.Contains(name, "/") {
		return []string{name}
	}
	search, ok := lookupEnvironment(s.Env, "PATH")
	if !ok {
		search = defaultPath
	}
	var list []string
	for dir := range strings.SplitSeq(search, ":") {
		list = append(list, path.Join(dir, name)) // an empty entry means the working directory
	}
	return list
}

// busyPatience is how long a launcher waits for a program file that is open for writing
// elsewhere: in the starter, between fork and execve of some other process.
const (
	busyPatience = 500 * time.Millisecond
	busyPause    = 10 * time.Millisecond
)

// attempt is a program to try, laid out for execve(2).
type attempt struct {
	asked string
	names []string
	paths []*byte // of names; nil means the program in programFD
	argv  []*byte
}

func layOut(s *payload.Spec, path string, args []string) attempt {
	if len(args) == 0 {
		args = []string{path}
	}
	if path == "" {
		return attempt{asked: args[0], argv: pointers(args)}
	}
	names := candidates(s, path)
	return attempt{path, names, pointers(names), pointers(args)}
}

// become turns the process into the payload. It returns only on failure, with the path that
// failed. It allocates the memory for all system calls before the limits take effect: under
// them this program may get no more.
func become(j *job, r report) (string, error) {
	s := &j.Spec
	attempts := []attempt{layOut(s, s.Path, s.Args)}
	if j.Exec != nil {
		for _, a := range j.Exec.Others {
			attempts = append(attempts, layOut(s, a.Path, a.Args))
		}
	}
	envp := pointers(s.Env)
	limits, err := kernelLimits(s.Limits)
	if err != nil {
		return s.Path, err
	}
	r.ready()

	resetSignals()
	for i := range limits {
		setRaw(&limits[i]) // only lowers limits; what can fail was done before
	}
	for i := range attempts {
		path, errno := attempts[i].try(envp)
		last := i == len(attempts)-1
		switch errno {
		case unix.ENOENT, unix.ENOTDIR, unix.EACCES, unix.ENOEXEC:
			if !last {
				continue
			}
		}
		return path, errno
	}
	return s.Path, unix.ENOENT
}

// try executes the program. It returns only on failure.
func (a *attempt) try(envp []*byte) (string, unix.Errno) {
	if a.paths == nil {
		return a.asked, execveat(programFD, a.argv, envp)
	}
	pause := unix.NsecToTimespec(busyPause.Nanoseconds())
	begin := time.Now()
	names := a.names
	best := len(names) - 1
	failure := unix.ENOENT
	for i := range names {
		errno := execve(a.paths[i], a.argv, envp)
		// Go by the clock: a signal of the Go runtime may end the sleep early.
		for errno == unix.ETXTBSY && time.Since(begin) < busyPatience {
			_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&pause)), 0, 0)
			errno = execve(a.paths[i], a.argv, envp)
		}
		switch errno {
		case unix.ENOENT, unix.ENOTDIR:
			if len(names) == 1 {
				failure = errno
			}
		case unix.EACCES:
			if failure != unix.EACCES {
				best, failure = i, errno
			}
		default:
			return names[i], errno
		}
	}
	if failure != unix.EACCES && len(names) > 1 {
		return a.asked, failure
	}
	return names[best], failure
}

// execveat executes an open file; it needs no path (execveat(2)).
func execveat(fd int, argv, envp []*byte) unix.Errno {
	var none byte
	_, _, errno := unix.RawSyscall6(unix.SYS_EXECVEAT, uintptr(fd), uintptr(unsafe.Pointer(&none)),
		uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&envp[0])), unix.AT_EMPTY_PATH, 0)
	return errno
}

func execve(path *byte, argv, envp []*byte) unix.Errno {
	_, _, errno := unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(path)),
		uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&envp[0])))
	return errno
}

// pointers makes C strings, with a null pointer at the end. Validate made sure that no
// string holds a NUL byte.
func pointers(list []string) []*byte {
	out := make([]*byte, len(list)+1)
	for i, s := range list {
		b := make([]byte, len(s)+1)
		copy(b, s)
		out[i] = &b[0]
	}
	return out
}

// signalAction is the kernel's struct sigaction, or larger: some architectures have no
// restorer.
type signalAction struct {
	handler, flags, restorer, mask uintptr
}

const (
	ignoreSignal = 1 // SIG_IGN; SIG_DFL is 0
	signalSet    = 8 // size of sigset_t in the kernel
)

// resetSignals sets every disposition to the default and unblocks everything. execve(2)
// itself resets this program's handlers, but a signal that was ignored when the wrapper
// started would stay ignored.
func resetSignals() {
	var byDefault, now signalAction
	for sig := uintptr(1); sig <= lastSignal; sig++ {
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig, 0, uintptr(unsafe.Pointer(&now)), signalSet, 0, 0)
		if errno == 0 && now.handler == ignoreSignal {
			_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&byDefault)), 0, signalSet, 0, 0)
		}
	}
	var none uint64
	_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&none)), 0, signalSet, 0, 0)
}

// kernelLimit is a limit as prlimit(2) takes it.
type kernelLimit struct {
	resource int
	value    unix.Rlimit
}

// kernelLimits prepares the limits. No hard limit goes above the present one: only root may
// raise that, and raiseHardLimits has tried.
func kernelLimits(limits []payload.Limit) ([]kernelLimit, error) {
	list := make([]kernelLimit, 0, len(limits))
	for _, l := range limits {
		number, _ := payload.ResourceNumber(l.Resource)
		var now unix.Rlimit
		if err := unix.Prlimit(0, number, nil, &now); err != nil {
			return nil, err
		}
		hard := min(l.Hard, now.Max)
		list = append(list, kernelLimit{number, unix.Rlimit{Cur: min(l.Soft, hard), Max: hard}})
	}
	return list, nil
}

// restoreFileLimit restores the soft limit of open files that the launcher started with.
// The Go runtime raises it to the hard limit at the start (syscall/rlimit.go), does not
// tell the former value, and restores it before its own execve(2). So this makes one that
// cannot succeed. Without it, select(2) and other old code in the payload would break.
func restoreFileLimit() { _ = syscall.Exec("", nil, nil) }

// raiseHardLimits raises hard limits that the spec wants higher, as far as the process may.
func raiseHardLimits(limits []payload.Limit) {
	for _, l := range limits {
		number, _ := payload.ResourceNumber(l.Resource)
		var now unix.Rlimit
		if err := unix.Prlimit(0, number, nil, &now); err == nil && l.Hard > now.Max {
			_ = unix.Prlimit(0, number, &unix.Rlimit{Cur: now.Cur, Max: l.Hard}, nil)
		}
	}
}

func setRaw(l *kernelLimit) {
	_, _, _ = unix.RawSyscall6(unix.SYS_PRLIMIT64, 0, uintptr(l.resource), uintptr(unsafe.Pointer(&l.value)), 0, 0, 0)
}
