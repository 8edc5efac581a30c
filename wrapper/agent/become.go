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

// defaultPath is searched when the payload's environment has no PATH: what
// container runtimes put there for images that say nothing.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// candidates lists the paths to try, as execvp(3) does.
func candidates(s *payload.Spec) []string {
	if !s.SearchPath || strings.Contains(s.Path, "/") {
		return []string{s.Path}
	}
	search, ok := lookupEnvironment(s.Env, "PATH")
	if !ok {
		search = defaultPath
	}
	var list []string
	for dir := range strings.SplitSeq(search, ":") {
		list = append(list, path.Join(dir, s.Path)) // an empty one is the working directory
	}
	return list
}

// busyPatience is how long a program file may be open for writing elsewhere: in
// the starter, for the moment between fork and execve of some other process.
const (
	busyPatience = 500 * time.Millisecond
	busyPause    = 10 * time.Millisecond
)

// become turns the process into the payload. It returns only when that failed,
// with the path that failed. Memory for all system calls is laid out before the
// limits take effect; they may forbid this program to take more.
func become(s *payload.Spec, r report) (string, error) {
	args := s.Args
	if len(args) == 0 {
		args = []string{s.Path}
	}
	names := candidates(s)
	paths := pointers(names)
	argv, envp := pointers(args), pointers(s.Env)
	limits, err := kernelLimits(s.Limits)
	if err != nil {
		return s.Path, err
	}
	r.ready()

	resetSignals()
	for i := range limits {
		setRaw(&limits[i]) // lowers only: what could fail was done before
	}
	pause := unix.NsecToTimespec(busyPause.Nanoseconds())
	begin := time.Now()
	best := len(names) - 1
	failure := unix.ENOENT
	for i := range names {
		errno := execve(paths[i], argv, envp)
		// By the clock: the sleep may end early, by a signal of the Go runtime.
		for errno == unix.ETXTBSY && time.Since(begin) < busyPatience {
			_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&pause)), 0, 0)
			errno = execve(paths[i], argv, envp)
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
		return s.Path, failure
	}
	return names[best], failure
}

func execve(path *byte, argv, envp []*byte) unix.Errno {
	_, _, errno := unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(path)),
		uintptr(unsafe.Pointer(&argv[0])), uintptr(unsafe.Pointer(&envp[0])))
	return errno
}

// pointers makes C strings, with a null pointer at the end. Validate has made
// sure that no string holds a NUL byte.
func pointers(list []string) []*byte {
	out := make([]*byte, len(list)+1)
	for i, s := range list {
		b := make([]byte, len(s)+1)
		copy(b, s)
		out[i] = &b[0]
	}
	return out
}

// signalAction is struct sigaction of the kernel, or more than that: some
// architectures have no restorer.
type signalAction struct {
	handler, flags, restorer, mask uintptr
}

const (
	ignoreSignal = 1 // SIG_IGN; SIG_DFL is 0
	signalSet    = 8 // size of sigset_t in the kernel
)

// resetSignals sets every disposition to the default and unblocks everything.
// Handlers of this program would be reset by execve(2) itself; what was ignored
// when the wrapper was started would remain ignored.
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

// kernelLimits prepares the limits: no hard limit above the present one, which
// only root may raise and raiseHardLimits has tried to.
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

// restoreFileLimit puts the soft limit of open files back to what it was when
// the launcher was started. The Go runtime raises it to the hard limit at the
// start (syscall/rlimit.go), tells nobody the former value, and puts it back
// before an execve(2) of its own making. So one is made that cannot succeed.
// Without this, select(2) and other old code in the payload would break.
func restoreFileLimit() { _ = syscall.Exec("", nil, nil) }

// raiseHardLimits raises what is to be above the present hard limit, as long as
// the process may.
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
