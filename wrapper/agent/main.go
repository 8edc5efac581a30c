package agent

import (
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"

	"golang.org/x/sys/unix"

	"podstarter/internal/buildinfo"
	"podstarter/payload"
	"podstarter/payload/procfamily"
	"podstarter/payload/threads"
)

// Exit codes of the wrapper.
const (
	exitDone  = 0 // printed what it was asked for
	exitSetup = 1 // could not start to listen
	exitUsage = 64
	// The Go runtime uses 2: the wrapper crashed, and the container's log has the stack.
)

// ExitLeft is the exit code of a wrapper that left on a request or a signal: EX_TEMPFAIL of
// sysexits(3), since the container is to be started again. It must not be 0: of a sidecar that
// ended with 0 the kubelet does not say why its next image cannot be pulled
// (kubelet_pods.go:convertToAPIContainerStatuses). Nor is it one of a program that a signal killed.
const ExitLeft = 75

// gcPercent trades CPU time, of which the wrapper uses almost none, for memory, which the
// job would lack.
const gcPercent = 25

// processors is how many threads run Go code at a time. The wrapper never needs more.
const processors = 2

// spareThreads are for concurrent system calls: launchers' reports, a look at the payload,
// the garbage collector, and calls that wait for CPU time because the payload uses it all.
// They still exist when the payload has used up the pod's threads. All of them take 0.3 MB.
const spareThreads = 16

const usage = `usage: %s -control DIR [-companion] [-pilot UID:GROUP] | -hold

The main process of a payload container: it starts the job when condor_pod_starter
asks for it, and kills it when the starter is gone. docs/developer/protocol.md says how.

`

// Main runs the wrapper until it is told to leave, and returns its exit code.
//
//	-control DIR      the control directory
//	-companion        not alone in its container: started by localexec
//	-own-mounts       started in a mount namespace of its own
//	-own-processes    started as the first process of a PID namespace, too
//	-group DIR        the payload's control group, made by localexec
//	-pilot UID:GROUP  the pilot runs as this user and not as root; members of
//	                  the group may enter the control directory
//	-hold             in a puller: do nothing until a signal says to leave
//	-version, -help   say so, and end
func Main(args []string) int {
	// Parent death signals of children go by the thread that forked them
	// (prctl(2), PR_SET_PDEATHSIG), so the loop must stay on one.
	runtime.LockOSThread()
	debug.SetGCPercent(gcPercent)
	runtime.GOMAXPROCS(processors)
	threads.Reserve(spareThreads)

	log := logger{os.Stderr}
	// It may run under the name of a file of /proc.
	_ = os.WriteFile(procfs+"/self/comm", []byte(WrapperName), 0)
	flags := flag.NewFlagSet(WrapperName, flag.ContinueOnError)
	flags.SetOutput(os.Stderr)
	dir := flags.String("control", "", "control `directory`")
	companion := flags.Bool("companion", false, "run beside a starter on the same machine")
	ownMounts := flags.Bool("own-mounts", false, "started in a mount namespace of its own")
	ownProcesses := flags.Bool("own-processes", false, "started as the first process of a PID namespace of its own; with -own-mounts")
	own := flags.String("group", "", "`directory` of the payload's control group")
	var peer *pilot
	flags.Func("pilot", "`UID:GROUP` of a pilot without root", func(text string) (err error) {
		peer, err = parsePilot(text)
		return err
	})
	hold := flags.Bool("hold", false, "do nothing: the container only has to have its image")
	version := flags.Bool("version", false, "print the version")
	flags.Usage = func() {} // -help prints it to standard output
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintf(os.Stdout, usage, WrapperName)
		flags.SetOutput(os.Stdout)
		flags.PrintDefaults()
		return exitDone
	case err != nil:
		log.print("usage: %s -control DIR [-companion] [-pilot UID:GROUP] | -hold", WrapperName)
		return exitUsage
	case *version:
		fmt.Fprintln(os.Stdout, buildinfo.Line())
		return exitDone
	case *hold && *dir == "" && flags.NArg() == 0:
		(&agent{}).awaitStop()
		return ExitLeft
	}
	if *dir == "" || flags.NArg() > 0 || *ownProcesses && !*ownMounts {
		log.print("usage: %s -control DIR [-companion] [-pilot UID:GROUP] | -hold", WrapperName)
		return exitUsage
	}
	if *ownMounts {
		if err := separateMounts(); err != nil {
			log.print("keep mounts of the payload from the machine: %v", err)
			return exitSetup
		}
	}
	a, err := begin(*dir, *own, station{companion: *companion, ownMounts: *ownMounts, ownProcesses: *ownProcesses}, peer, log)
	if err != nil {
		log.print("%v", err)
		if errors.Is(err, errNoProcesses) {
			return ExitNoProcesses
		}
		if !*companion {
			leaveWord(terminationLog, err)
		}
		return exitSetup
	}
	go a.leaveOnSignal()
	return a.loop()
}

// begin takes the environment in, and makes the agent.
func begin(dir, own string, at station, peer *pilot, log logger) (*agent, error) {
	env, err := takeEnvironment()
	if err != nil {
		return nil, err
	}
	if own != "" {
		if at.group, err = openGroup(own); err != nil {
			return nil, err
		}
	}
	if at.ownProcesses {
		if at.machine, err = ownProc(); err != nil {
			return nil, err
		}
	}
	return newAgent(dir, env, at, peer, log)
}

// station is where a wrapper runs, and what it has to itself there.
type station struct {
	companion    bool     // shares its place with other programs
	ownMounts    bool     // has a mount namespace to itself
	ownProcesses bool     // is the first process of a PID namespace
	machine      *os.File // /proc of the machine, then
	group        *group   // the payload's own; nil if it has none, or that of its container
}

// newAgent prepares the process and announces it.
func newAgent(dir string, env environment, at station, peer *pilot, log logger) (*agent, error) {
	unix.Umask(0o077)
	// Files that the container runtime left open must not reach the payload.
	if err := closeAllOnExec(); err != nil {
		return nil, fmt.Errorf("keep inherited files from the payload: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("take over orphans (PR_SET_CHILD_SUBREAPER): %w", err)
	}
	//nolint:forbidigo // the container runtime's, not the image's
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open the payload's default files: %w", err)
	}
	a := &agent{
		log:      log,
		imageEnv: env.image,
		uid:      os.Geteuid(),
		station:  at,
		pilot:    peer,
		null:     null,
		events:   make(chan event),

		executions: make(map[int64]*execution),
	}
	if a.uid == 0 {
		if a.killer, err = procfamily.NewKiller(); err != nil {
			return nil, err
		}
	}
	a.hello = payload.Hello{
		Protocol:     payload.Protocol,
		Nonce:        env.nonce,
		Boot:         rand.Text(),
		PID:          os.Getpid(),
		PIDNamespace: pidNamespace(),
		UID:          a.uid,
		NoNewPrivs:   noNewPrivs(),
		OwnMounts:    at.ownMounts,
		OwnProcesses: at.ownProcesses,
		Version:      buildinfo.Version(),
	}
	if a.control, err = openControl(dir, a.hello.Boot, peer); err != nil {
		return nil, err
	}
	if err := a.control.listen(); err != nil {
		return nil, err
	}
	a.catchChildren()
	go a.accept()
	if err := a.control.announce(); err != nil {
		return nil, err
	}
	return a, nil
}

// closeAllOnExec marks all files but the standard ones. close_range(2) can do that since
// Linux 5.11, unless the container runtime forbids it as an unknown system call.
func closeAllOnExec() error {
	if unix.CloseRange(uint(unix.Stderr+1), ^uint(0), unix.CLOSE_RANGE_CLOEXEC) == nil {
		return nil
	}
	return closeEachOnExec()
}

func closeEachOnExec() error {
	entries, err := os.ReadDir(procfs + "/self/fd")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > unix.Stderr {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// procfs is where /proc is mounted. The container runtime mounts it, not the
// image.
const procfs = "/proc"

func pidNamespace() string {
	link, err := os.Readlink(procfs + "/self/ns/pid")
	if err != nil {
		return ""
	}
	return link
}

func noNewPrivs() bool {
	value, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	return err == nil && value == 1
}

// logger writes to the container's log. Lines have no time, since the container runtime
// adds it.
type logger struct{ w io.Writer }

func (l logger) print(format string, args ...any) {
	fmt.Fprintf(l.w, WrapperName+": "+format+"\n", args...)
}
