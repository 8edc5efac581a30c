package job

import (
	"fmt"
	"strings"
	"syscall"

	"podstarter/classads"
)

// Signals are the signals that a job wants to get.
type Signals struct {
	Soft       syscall.Signal // KillSig: it should end
	Remove     syscall.Signal // RemoveKillSig: it was removed from the queue
	Hold       syscall.Signal // HoldKillSig: it was put on hold
	Checkpoint syscall.Signal // CheckpointSig
	// RemoveSet: the job sets RemoveKillSig. For a docker job stock then uses it
	// instead of KillSig for every soft end.
	RemoveSet bool
}

// SignalsOf reads the job's signals; each may be a number or a name, and defaults
// to SIGTERM (condor_utils/classad_helpers.cpp:findSignal,
// condor_starter.V6.1/user_proc.cpp:UserProc::initKillSigs).
func SignalsOf(ad *classads.Ad) Signals {
	s := Signals{}
	s.Soft, _ = signalAttr(ad, "KillSig", syscall.SIGTERM)
	s.Remove, s.RemoveSet = signalAttr(ad, "RemoveKillSig", syscall.SIGTERM)
	s.Hold, _ = signalAttr(ad, "HoldKillSig", syscall.SIGTERM)
	s.Checkpoint, _ = signalAttr(ad, "CheckpointSig", s.Soft)
	return s
}

// maxSignal is the largest signal of Linux (signal(7)).
const maxSignal = 64

func signalAttr(ad *classads.Ad, attr string, def syscall.Signal) (syscall.Signal, bool) {
	if n, err := ad.GetInt(attr); err == nil {
		if n >= 1 && n <= maxSignal {
			return syscall.Signal(n), true
		}
		return def, false
	}
	if name, err := ad.GetString(attr); err == nil {
		if s, ok := SignalNumber(name); ok {
			return s, true
		}
	}
	return def, false
}

// SignalNumber returns the number for a name such as "SIGTERM" or "TERM".
func SignalNumber(name string) (syscall.Signal, bool) {
	name = strings.TrimPrefix(strings.ToUpper(strings.TrimSpace(name)), "SIG")
	for s, n := range signalNames {
		if n.name == name && name != "" {
			return syscall.Signal(s), true
		}
	}
	return 0, false
}

// SignalName returns "SIGTERM" for 15, and "signal 99" for an unknown number.
func SignalName(s syscall.Signal) string {
	if int(s) < len(signalNames) && signalNames[s].name != "" {
		return "SIG" + signalNames[s].name
	}
	return fmt.Sprintf("signal %d", int(s))
}

// describeSignal returns the text for ExitReason: the words of strsignal(3)
// (condor_daemon_core.V6/daemon_core.cpp:GetExceptionString).
func describeSignal(s syscall.Signal) string {
	const firstRealTime = 34 // glibc keeps 32 and 33 for itself
	words := fmt.Sprintf("Unknown signal %d", int(s))
	switch {
	case int(s) < len(signalNames) && signalNames[s].words != "":
		words = signalNames[s].words
	case s >= firstRealTime && s <= maxSignal:
		words = fmt.Sprintf("Real-time signal %d", int(s)-firstRealTime)
	}
	return fmt.Sprintf("signal %d (%s)", int(s), words)
}

// signalNames holds the signals of Linux by number, with the words of glibc.
var signalNames = [...]struct{ name, words string }{
	syscall.SIGHUP:    {"HUP", "Hangup"},
	syscall.SIGINT:    {"INT", "Interrupt"},
	syscall.SIGQUIT:   {"QUIT", "Quit"},
	syscall.SIGILL:    {"ILL", "Illegal instruction"},
	syscall.SIGTRAP:   {"TRAP", "Trace/breakpoint trap"},
	syscall.SIGABRT:   {"ABRT", "Aborted"},
	syscall.SIGBUS:    {"BUS", "Bus error"},
	syscall.SIGFPE:    {"FPE", "Floating point exception"},
	syscall.SIGKILL:   {"KILL", "Killed"},
	syscall.SIGUSR1:   {"USR1", "User defined signal 1"},
	syscall.SIGSEGV:   {"SEGV", "Segmentation fault"},
	syscall.SIGUSR2:   {"USR2", "User defined signal 2"},
	syscall.SIGPIPE:   {"PIPE", "Broken pipe"},
	syscall.SIGALRM:   {"ALRM", "Alarm clock"},
	syscall.SIGTERM:   {"TERM", "Terminated"},
	syscall.SIGSTKFLT: {"STKFLT", "Stack fault"},
	syscall.SIGCHLD:   {"CHLD", "Child exited"},
	syscall.SIGCONT:   {"CONT", "Continued"},
	syscall.SIGSTOP:   {"STOP", "Stopped (signal)"},
	syscall.SIGTSTP:   {"TSTP", "Stopped"},
	syscall.SIGTTIN:   {"TTIN", "Stopped (tty input)"},
	syscall.SIGTTOU:   {"TTOU", "Stopped (tty output)"},
	syscall.SIGURG:    {"URG", "Urgent I/O condition"},
	syscall.SIGXCPU:   {"XCPU", "CPU time limit exceeded"},
	syscall.SIGXFSZ:   {"XFSZ", "File size limit exceeded"},
	syscall.SIGVTALRM: {"VTALRM", "Virtual timer expired"},
	syscall.SIGPROF:   {"PROF", "Profiling timer expired"},
	syscall.SIGWINCH:  {"WINCH", "Window changed"},
	syscall.SIGIO:     {"IO", "I/O possible"},
	syscall.SIGPWR:    {"PWR", "Power failure"},
	syscall.SIGSYS:    {"SYS", "Bad system call"},
}
