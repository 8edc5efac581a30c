package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/integration/images/probe/facts"
)

// attempt collects the results of an attack.
type attempt struct{ facts.Attempt }

// try notes one thing that was tried, and whether it was allowed.
func (a *attempt) try(what string, err error) {
	if err == nil {
		a.Got = append(a.Got, what)
		return
	}
	a.Refused = append(a.Refused, fmt.Sprintf("%s: %v", what, err))
}

// attacks are what a hostile job tries. Those in asRoot first try to become root again, in
// case the wrapper has left a way.
var (
	attacks = map[string]func(*attempt){
		"setuid":      setuidProgram,
		"root":        func(a *attempt) { a.try("user 0", become()) },
		"signal":      signalGuards,
		"pry-wrapper": func(a *attempt) { pryInto(a, "condor_pod_wrap") },
		"pry-pilot": func(a *attempt) {
			pryInto(a, "condor_pod_star", "condor_master", "condor_startd", "condor_procd", "condor_shared_p")
		},
		"token":             readToken,
		"replace-wrapper":   replaceWrapper,
		"control-directory": enterControl,
		"connect":           callWrapper,
		"groups":            foreignGroups,
		"descriptors":       inheritedFiles,
		"environment":       ownEnvironment,
		"arguments":         othersArguments,
		"neighbour-signal":  signalNeighbours,
		"neighbour-files":   readNeighboursFiles,
		"neighbour-memory":  readNeighboursMemory,
		"neighbour-process": pryIntoNeighbours,
		"leftovers":         findLeftovers,
		"hook-process":      func(a *attempt) { pryInto(a, facts.SiteHook) },
		"ssh-server":        func(a *attempt) { pryInto(a, visitProgram) },
		"ssh-stranger":      logIn,
		"starter-socket":    passConnections,
		"chirp-cookie":      forgeCookie,
		"cut-off":           makeSockets,
	}
	asRoot = []string{"signal", "pry-wrapper", "pry-pilot", "token", "replace-wrapper", "control-directory", "connect"}
)

// attack carries out attacks, each in a process of its own, and prints each result on a
// line.
func attack(_ *state, names string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(names, ",") {
		child := exec.Command(self, "attack-alone="+name)
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Run(); err != nil {
			return fmt.Errorf("attack %s: %w", name, err)
		}
	}
	return nil
}

func attackAlone(_ *state, name string) error {
	// System calls such as ptrace are answered by thread.
	runtime.LockOSThread()
	do, ok := attacks[name]
	kind := name
	if !ok { // of a plugin
		kind = strings.TrimPrefix(name, "plugin-")
		do, ok = attacks[kind]
	}
	if !ok {
		return fmt.Errorf("no attack %q", name)
	}
	a := &attempt{facts.Attempt{Attack: name}}
	for _, n := range asRoot {
		if n == kind {
			_ = become()
		}
	}
	do(a)
	text, err := json.Marshal(a.Attempt)
	if err != nil {
		return err
	}
	return print(os.Stdout, string(text))
}

// become takes root's ids, in all threads. Tracing root needs both (ptrace(2)).
func become() error {
	if err := syscall.Setresuid(0, 0, 0); err != nil {
		return err
	}
	return syscall.Setresgid(0, 0, 0)
}

// setuidProgram runs the setuid-root program of the hostile image, which prints the user
// that it began as.
func setuidProgram(a *attempt) {
	out, err := exec.Command("/bin/rootsh", "-c", "true").CombinedOutput()
	if err == nil && !strings.Contains(string(out), "began as euid 0,") {
		err = errors.New(strings.TrimSpace(string(out)))
	}
	a.try("effective user 0", err)
}

// A seen process is one of the table that everybody in the pod can read.
type seenProcess struct {
	pid  int
	name string
	args string
}

func processes() []seenProcess {
	entries, _ := os.ReadDir("/proc")
	var all []seenProcess
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		name, err := os.ReadFile("/proc/" + e.Name() + "/comm")
		if err != nil {
			continue
		}
		args, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
		p := seenProcess{pid, strings.TrimSpace(string(name)), strings.ReplaceAll(string(args), "\x00", " ")}
		// A program that has started itself anew is called "exe" (/proc/self/exe).
		if first, _, _ := strings.Cut(p.args, " "); p.name == "exe" && first != "" {
			p.name = filepath.Base(first)
			p.name = p.name[:min(len(p.name), 15)]
		}
		all = append(all, p)
	}
	return all
}

// harmless is a signal that has no effect. The permission to send it is the same as for all
// others (kill(2)).
const harmless = syscall.SIGURG

// signalGuards signals the processes that guard the job.
func signalGuards(a *attempt) {
	for _, p := range processes() {
		if strings.HasPrefix(p.name, "condor_") && p.name != visitProgram {
			a.try("signal to "+p.name, syscall.Kill(p.pid, harmless))
		}
	}
}

// pryInto tries all ways to look into processes of those names.
func pryInto(a *attempt, names ...string) {
	for _, p := range processes() {
		for _, name := range names {
			if p.name == name {
				pry(a, p)
			}
		}
	}
}

func pry(a *attempt, p seenProcess) {
	dir := "/proc/" + strconv.Itoa(p.pid)
	read := func(what string, err error) { a.try(what+" of "+p.name, err) }
	_, err := os.ReadFile(dir + "/environ")
	read("environment", err)
	mem, err := os.Open(dir + "/mem")
	read("memory", err)
	mem.Close()
	_, err = os.Readlink(dir + "/fd/0")
	read("open files", err)
	_, err = os.ReadDir(dir + "/root/")
	read("root directory", err)
	_, err = os.ReadDir(dir + "/cwd/")
	read("working directory", err)
	_, err = os.ReadFile(dir + "/root/var/run/secrets/kubernetes.io/serviceaccount/token")
	if !errors.Is(err, os.ErrNotExist) { // a wrapper sees no token
		read("token in the file system", err)
	}
	// Tracing ends with this process, and nothing was stopped.
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(p.pid), 0, 0, 0, 0)
	if errno == 0 {
		read("trace", nil)
	} else {
		read("trace", errno)
	}
}

// readToken looks for a token of the pod's service account where the kubelet puts it.
func readToken(a *attempt) {
	_, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/token")
	a.try("token", err)
}

// replaceWrapper tries to change the file from which the next container takes its wrapper.
// Nobody can write to a file that is being executed; whether its mode can be changed shows
// whether that would work at another time.
func replaceWrapper(a *attempt) {
	const path = "/proc/slabinfo"
	a.try("mode of the wrapper", os.Chmod(path, 0o755))
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if !errors.Is(err, unix.ETXTBSY) {
		a.try("text of the wrapper", err)
	}
	if err == nil {
		f.Close()
	}
}

const controlDirectory = "/run/podstarter/control"

// controls are the control directories of payload containers, by their known names: nobody
// may list them.
func controls() []string {
	var all []string
	for _, name := range []string{"payload", "payload-2", "payload-3"} { // the third may be a spare
		all = append(all, filepath.Join(controlDirectory, name))
	}
	return all
}

// enterControl tries to forge an exit record.
func enterControl(a *attempt) {
	for _, dir := range controls() {
		path := filepath.Join(dir, "exit."+facts.Leftover+".json")
		err := os.WriteFile(path, []byte("{}\n"), 0o600)
		a.try("exit record in "+dir, err)
		if err == nil {
			os.Remove(path)
		}
	}
}

// callWrapper connects to wrappers as a starter does, and counts an answer as success.
func callWrapper(a *attempt) {
	for _, dir := range controls() {
		a.try("answer of the wrapper in "+dir, call(filepath.Join(dir, "wrapper.sock")))
	}
}

func call(socket string) error {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	_, err = bufio.NewReader(conn).ReadString('\n')
	return err
}

func foreignGroups(a *attempt) {
	groups, err := os.Getgroups()
	if err != nil {
		a.try("list of groups", err)
		return
	}
	for _, g := range groups {
		if g != os.Getgid() && g != os.Getegid() {
			a.try("group "+strconv.Itoa(g), nil)
		}
	}
}

func inheritedFiles(a *attempt) {
	for number, target := range descriptors() {
		if n, err := strconv.Atoi(number); err == nil && n > 2 {
			a.try("descriptor of "+target, nil)
		}
	}
}

// ownEnvironment looks for what is meant for the wrapper. The starter finds what a plugin
// has left by one variable.
func ownEnvironment(a *attempt) {
	for _, v := range os.Environ() {
		if strings.HasPrefix(v, "POD_STARTER_PLUGIN_RUN=") {
			continue
		}
		if strings.HasPrefix(v, "POD_STARTER_") || strings.HasPrefix(v, "KUBERNETES_") {
			a.try(v, nil)
		}
	}
}

// othersArguments prints every argument vector there is; the test knows the secrets.
func othersArguments(a *attempt) {
	for _, p := range processes() {
		a.try(p.args, nil)
	}
}

// keepers are the victims.
func keepers() []seenProcess {
	var found []seenProcess
	for _, p := range processes() {
		if strings.Contains(p.args, facts.Keeper) {
			found = append(found, p)
		}
	}
	return found
}

// signalNeighbours does what `pkill` does with a pattern that others match, too.
func signalNeighbours(a *attempt) {
	for _, p := range keepers() {
		a.try("signal to "+p.args, syscall.Kill(p.pid, harmless))
	}
}

func pryIntoNeighbours(a *attempt) {
	for _, p := range keepers() {
		pry(a, p)
	}
}

// readNeighboursFiles looks for the treasure wherever sandboxes can be.
func readNeighboursFiles(a *attempt) {
	for _, execute := range []string{"/var/lib/condor/execute/jobs", "/var/lib/podstarter/scratch/jobs"} {
		sandboxes, err := os.ReadDir(execute)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			a.try("list of sandboxes", err)
		}
		for _, s := range sandboxes {
			for _, below := range []string{"", "scratch", "user"} {
				_, err := os.ReadFile(filepath.Join(execute, s.Name(), below, facts.Treasure))
				if !errors.Is(err, os.ErrNotExist) {
					a.try("treasure of "+s.Name(), err)
				}
			}
		}
	}
}

func readNeighboursMemory(a *attempt) {
	_, err := os.ReadFile("/dev/shm/" + facts.Treasure)
	a.try("treasure in /dev/shm", err)
	a.try("treasure in shared memory", attach(facts.TreasureKey))
}

func findLeftovers(a *attempt) {
	_, err := os.Stat("/dev/shm/" + facts.Leftover)
	a.try("leftover in /dev/shm", err)
	a.try("leftover in shared memory", attach(facts.LeftoverKey))
}

// attach looks into a segment of System V shared memory that must exist.
func attach(key int) error {
	id, err := unix.SysvShmGet(key, 4096, 0)
	if err != nil {
		return err
	}
	memory, err := unix.SysvShmAttach(id, 0, unix.SHM_RDONLY)
	if err != nil {
		return err
	}
	return unix.SysvShmDetach(memory)
}

// deposit puts something of a name into /dev/shm, and makes a segment of shared memory.
// Only this user can read them.
func deposit(_ *state, what string) error {
	key := map[string]int{facts.Leftover: facts.LeftoverKey, facts.Treasure: facts.TreasureKey}[what]
	if key == 0 {
		return fmt.Errorf("leave what? %q", what)
	}
	if err := os.WriteFile("/dev/shm/"+what, []byte(what+"\n"), 0o600); err != nil {
		return err
	}
	_, err := unix.SysvShmGet(key, 4096, unix.IPC_CREAT|0o600)
	return err
}

// link makes a symbolic link, NAME:TARGET.
func link(_ *state, argument string) error {
	name, target, _ := strings.Cut(argument, ":")
	return os.Symlink(target, name)
}
