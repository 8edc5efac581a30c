//nolint:forbidigo,errcheck // test programs, in temporary directories, with output to be read
package agenttest

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// job is the payload: args say what it does.
//
//	exit CODE          ends
//	die SIGNAL         kills itself
//	sleep              says "ready" and waits for ever
//	stubborn           the same, with all signals ignored
//	tree               starts a family that tries to get away
//	leaf               one of that family
//	bomb               forks for ever
//	assassin           kills whatever it can, for ever
//	lines N            prints N lines
//	cat                copies stdin to stdout
//	burn MS            uses MS milliseconds of CPU time
//	burnchild MS       has an orphan use it
//	memory BYTES       touches memory, ends
//	hold MIB           touches memory, says "ready", waits
//	eat HOW            uses ever more memory: slowly, leap, shared, cached, crowd
//	facts              prints [Facts] as JSON
//	sockets            says which families it can make sockets of
//	setuid PROGRAM     executes PROGRAM facts
//	deep DIR N         makes DIR with N directories in each other
//	many DIR N         makes N files in DIR
//	swap DIR TARGET    says "ready" and makes and moves directories and links to
//	                   TARGET in DIR, for ever
func job(args []string) int {
	number := func(i int) int {
		n, err := strconv.Atoi(args[i])
		if err != nil {
			panic(err)
		}
		return n
	}
	switch args[0] {
	case "exit":
		return number(1)
	case "die":
		signal.Reset()
		_ = unix.Kill(os.Getpid(), syscall.Signal(number(1)))
		select {}
	case "sleep":
		fmt.Println("ready")
		wait()
	case "stubborn":
		signal.Ignore()
		fmt.Println("ready")
		wait()
	case "tree":
		signal.Ignore()
		tree()
		fmt.Println("ready")
		wait()
	case "leaf":
		signal.Ignore()
		fmt.Println("leaf", os.Getpid())
		wait()
	case "fork-leaf":
		start("leaf", true)
	case "bomb":
		fmt.Println("ready")
		bomb()
	case "assassin":
		fmt.Println("ready")
		for {
			_, _, _ = unix.RawSyscall(unix.SYS_KILL, ^uintptr(0), uintptr(unix.SIGKILL), 0)
		}
	case "lines":
		lines(number(1))
	case "cat":
		if _, err := io.Copy(os.Stdout, os.Stdin); err != nil {
			return 1
		}
	case "burn":
		burn(time.Duration(number(1)) * time.Millisecond)
	case "burnchild":
		start("burn", true, args[1])
		time.Sleep(50 * time.Millisecond)
		start("burn", true, args[1])
		wait()
	case "memory":
		block := make([]byte, number(1))
		for i := range block {
			block[i] = 1
		}
		runtime.KeepAlive(block)
	case "eat":
		eat(args[1])
	case "hold":
		block := make([]byte, number(1)<<20)
		for i := range block {
			block[i] = 1
		}
		fmt.Println("ready")
		wait()
		runtime.KeepAlive(block)
	case "facts":
		return printFacts()
	case "sockets":
		sockets()
	case "deep":
		return deep(args[1], number(2))
	case "many":
		return many(args[1], number(2))
	case "swap":
		fmt.Println("ready")
		swap(args[1], args[2])
	case "setuid":
		_ = unix.Exec(args[1], []string{jobName, "facts"}, os.Environ())
		return 1
	}
	return 0
}

// sockets prints a line for each of a few families.
func sockets() {
	for _, family := range []int{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK} {
		result := "ok"
		if _, err := unix.Socket(family, unix.SOCK_DGRAM, 0); err != nil {
			result = unix.ErrnoName(err.(syscall.Errno))
		}
		fmt.Println(family, result)
	}
}

func wait() {
	for {
		_ = unix.Pause()
	}
}

// start runs another payload and does not wait for it.
func start(what string, session bool, args ...string) {
	cmd := exec.Command("/proc/self/exe", append([]string{what}, args...)...)
	cmd.Args[0] = jobName
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: session}
	if err := cmd.Start(); err != nil {
		fmt.Println("cannot start", what, err)
	}
}

// tree starts children, children in their own session, and orphans whose parent
// has ended (double fork).
func tree() {
	for range 3 {
		start("leaf", false)
		start("leaf", true)
		start("fork-leaf", true)
	}
}

// Leaves is how many processes a "tree" has besides its root.
const Leaves = 9

// bomb forks as fast as the system lets it. It only makes system calls, since a child of
// fork(2) has none of the Go runtime's threads.
func bomb() {
	for {
		_, _, _ = unix.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	}
}

func lines(n int) {
	w := bufio.NewWriter(os.Stdout)
	defer w.Flush()
	for i := range n {
		fmt.Fprintf(w, "line %d of the output\n", i)
	}
}

func burn(d time.Duration) {
	for {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil || u.Utime.Nano()+u.Stime.Nano() >= d.Nanoseconds() {
			return
		}
	}
}

// Facts is what a payload reports about itself.
type Facts struct {
	UIDs, GIDs  [3]int
	Groups      []int
	Dir         string
	Umask       int
	Nice        int
	CPUs        []int
	OOMScoreAdj string
	NoNewPrivs  string
	Bounding    string
	Effective   string
	Blocked     string // signal mask
	Ignored     string
	Session     bool // leader of its session
	Files       []string
	Args        []string
	Env         []string
	Core, Nproc [2]uint64
}

func printFacts() int {
	var f Facts
	var ids [6]int
	ids[0], ids[1], ids[2] = unix.Getresuid()
	ids[3], ids[4], ids[5] = unix.Getresgid()
	copy(f.UIDs[:], ids[:3])
	copy(f.GIDs[:], ids[3:])
	f.Groups, _ = unix.Getgroups()
	f.Dir, _ = os.Getwd()
	f.Umask = unix.Umask(0)
	unix.Umask(f.Umask)
	value, _ := unix.Getpriority(unix.PRIO_PROCESS, 0)
	f.Nice = 20 - value
	var cpus unix.CPUSet
	_ = unix.SchedGetaffinity(0, &cpus)
	for n := range 1024 {
		if cpus.IsSet(n) {
			f.CPUs = append(f.CPUs, n)
		}
	}
	adj, _ := os.ReadFile("/proc/self/oom_score_adj")
	f.OOMScoreAdj = strings.TrimSpace(string(adj))
	status, _ := os.ReadFile("/proc/self/status")
	fields := map[string]*string{"NoNewPrivs": &f.NoNewPrivs, "CapBnd": &f.Bounding, "CapEff": &f.Effective, "SigBlk": &f.Blocked, "SigIgn": &f.Ignored}
	for line := range strings.Lines(string(status)) {
		key, value, _ := strings.Cut(line, ":")
		if to, ok := fields[key]; ok {
			*to = strings.TrimSpace(value)
		}
	}
	session, _ := unix.Getsid(0)
	f.Session = session == os.Getpid()
	f.Files = openFiles()
	f.Args, f.Env = os.Args, os.Environ()
	limit := func(resource int) [2]uint64 {
		var l unix.Rlimit
		_ = unix.Prlimit(0, resource, nil, &l)
		return [2]uint64{l.Cur, l.Max}
	}
	f.Core, f.Nproc = limit(unix.RLIMIT_CORE), limit(unix.RLIMIT_NPROC)
	return writeFacts(f)
}

func writeFacts(f Facts) int {
	if err := json.NewEncoder(os.Stdout).Encode(f); err != nil {
		return 1
	}
	return 0
}

// openFiles lists open files except those that the Go runtime opened itself.
func openFiles() []string {
	var list []string
	for fd := range 64 {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		if err == nil && flags&unix.FD_CLOEXEC == 0 {
			list = append(list, strconv.Itoa(fd))
		}
	}
	slices.Sort(list)
	return list
}
