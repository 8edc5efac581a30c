package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"podstarter/integration/images/probe/facts"
)

// state is what earlier steps leave for later ones.
type state struct {
	peeks map[string]string
	suids map[string]facts.Setuid
	kept  [][]byte
	code  int // of the account
}

var steps map[string]func(*state, string) error

func init() {
	// Filled here because detached copies of the program look steps up as well.
	steps = map[string]func(*state, string) error{
		"facts": func(s *state, _ string) error {
			seen, err := look(s)
			if err != nil {
				return err
			}
			text, err := json.Marshal(seen)
			if err != nil {
				return err
			}
			// Padded, so that the length of a process number does not change the number of
			// transferred bytes.
			const length = 16 << 10
			return print(os.Stdout, string(text)+strings.Repeat(" ", max(0, length-len(text))))
		},
		"out":          func(_ *state, text string) error { return print(os.Stdout, text) },
		"err":          func(_ *state, text string) error { return print(os.Stderr, text) },
		"cat":          cat,
		"chirp":        chirp,
		"copy":         func(*state, string) error { _, err := io.Copy(os.Stdout, os.Stdin); return err },
		"setup":        func(_ *state, _ string) error { return site("setup") },
		"teardown":     func(_ *state, _ string) error { return site("teardown") },
		"file":         file,
		"disk":         disk,
		"peek":         peek,
		"suid":         suid,
		"mark":         mark,
		"shm":          shm,
		"memory":       memory,
		"eat":          eat,
		"burn":         burn,
		"sleep":        sleep,
		"resume":       resume,
		"trap":         trap,
		"ignore":       ignore,
		"detach":       func(_ *state, n string) error { return detach("linger", n) },
		"hydra":        func(_ *state, n string) error { return detach("grow", n) },
		"linger":       func(s *state, _ string) error { return linger(s) },
		"stopped":      func(_ *state, n string) error { return detach("halt", n) },
		"halt":         halt,
		"fifo":         func(_ *state, name string) error { return syscall.Mkfifo(name, 0o644) },
		"rename":       rename,
		"meet":         meet,
		"crowd":        crowd,
		"covet":        covet,
		"flood":        func(_ *state, dir string) error { return flood(dir) },
		"grow":         func(s *state, _ string) error { return grow(s) },
		"attack":       attack,
		"attack-alone": attackAlone,
		"leave":        deposit,
		"link":         link,
		"ready": func(*state, string) error {
			// By way of /proc, since it is the first thread that gives a process its name.
			return os.WriteFile("/proc/self/comm", []byte(facts.Ready), 0o644)
		},
		"forever": func(*state, string) error {
			forever()
			return nil
		},
		"exit":    exit,
		"account": account,
		"end":     end,
		"signal":  die,
	}
}

func print(to *os.File, text string) error {
	_, err := fmt.Fprintln(to, text)
	return err
}

func cat(_ *state, name string) error {
	text, err := os.ReadFile(name)
	if err == nil {
		_, err = os.Stdout.Write(text)
	}
	return err
}

func file(_ *state, argument string) error {
	name, text, _ := strings.Cut(argument, ":")
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o644)
}

func disk(_ *state, argument string) error {
	name, size, _ := strings.Cut(argument, ":")
	mib, err := strconv.Atoi(size)
	if err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	block := make([]byte, 1<<20)
	for i := range mib {
		block[0] = byte(i)
		if _, err := f.Write(block); err != nil {
			return err
		}
	}
	return f.Close()
}

func mark(_ *state, path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

func shm(_ *state, argument string) error {
	key, err := strconv.Atoi(argument)
	if err != nil {
		return err
	}
	const create, exclusive = 0o1000, 0o2000 // IPC_CREAT, IPC_EXCL of shmget(2)
	if _, _, errno := syscall.Syscall(syscall.SYS_SHMGET, uintptr(key), 4096, create|exclusive|0o666); errno != 0 {
		return errno
	}
	return nil
}

func memory(s *state, argument string) error {
	mib, err := strconv.Atoi(argument)
	if err != nil {
		return err
	}
	block := make([]byte, mib<<20)
	for i := 0; i < len(block); i += 4096 {
		block[i] = byte(i >> 12)
	}
	s.kept = append(s.kept, block)
	return nil
}

func burn(_ *state, argument string) error {
	seconds, err := strconv.ParseFloat(argument, 64)
	if err != nil {
		return err
	}
	want := time.Duration(seconds * float64(time.Second))
	for x := uint64(1); ; {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			return err
		}
		if time.Duration(usage.Utime.Nano()+usage.Stime.Nano()) >= want {
			return nil
		}
		for range 1 << 20 {
			x = x*6364136223846793005 + 1442695040888963407
		}
	}
}

func sleep(_ *state, argument string) error {
	d, err := time.ParseDuration(argument)
	if err == nil {
		time.Sleep(d)
	}
	return err
}

func resume(s *state, argument string) error {
	name, code, _ := strings.Cut(argument, ":")
	if _, err := os.Lstat(name); err != nil {
		return nil
	}
	if err := cat(s, name); err != nil {
		return err
	}
	return exit(s, code)
}

func trap(_ *state, argument string) error {
	name, text, _ := strings.Cut(argument, ":")
	code, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, syscall.SIGTERM)
	go func() {
		if err := os.WriteFile(name, []byte((<-caught).String()+"\n"), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "probe: trap:", err)
			code = failed
		}
		os.Exit(code)
	}()
	return nil
}

func ignore(*state, string) error {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT)
	return nil
}

// detach starts processes as a daemon does: the child that starts them exits, so they lose
// their parent, and each has a session of its own.
func detach(kind, argument string) error {
	n, err := strconv.Atoi(argument)
	if err != nil {
		return err
	}
	for range n {
		between, err := again(kind)
		if err != nil {
			return err
		}
		between.Env = append(os.Environ(), "PROBE_DETACH=1")
		if err := between.Run(); err != nil {
			return fmt.Errorf("starting a detached process: %w", err)
		}
	}
	return nil
}

// successor starts this program again in a new session, without waiting.
func successor(kind string) error {
	next, err := again(kind)
	if err != nil {
		return err
	}
	return next.Start()
}

// again is this program once more, with one step and in a session of its own.
func again(step string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.Command(self, step)
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return command, nil
}

// forever does not block on a channel: without a second goroutine the runtime
// would call that a deadlock.
func forever() {
	for {
		time.Sleep(time.Hour)
	}
}

func linger(s *state) error {
	if os.Getenv("PROBE_DETACH") != "" {
		os.Unsetenv("PROBE_DETACH")
		return successor("linger")
	}
	if err := ignore(s, ""); err != nil {
		return err
	}
	forever()
	return nil
}

// halt is linger, stopped: only SIGKILL still reaches it.
func halt(*state, string) error {
	if os.Getenv("PROBE_DETACH") != "" {
		os.Unsetenv("PROBE_DETACH")
		return successor("halt")
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		return err
	}
	forever()
	return nil
}

func grow(s *state) error {
	os.Unsetenv("PROBE_DETACH")
	if err := ignore(s, ""); err != nil {
		return err
	}
	// Long enough to leave the machine some time, short enough to outrun somebody who
	// reads a list of processes and then kills them.
	time.Sleep(10 * time.Millisecond)
	return successor("grow")
}

func exit(_ *state, argument string) error {
	code, err := strconv.Atoi(argument)
	if err != nil {
		return err
	}
	os.Exit(code)
	return nil
}

func die(_ *state, argument string) error {
	n, err := strconv.Atoi(argument)
	if err != nil {
		return err
	}
	signal.Reset(syscall.Signal(n))
	if err := syscall.Kill(os.Getpid(), syscall.Signal(n)); err != nil {
		return err
	}
	forever()
	return nil
}

// site is what a program of the site does before and after a job: it leaves a file at the
// top of the container's file system, and prints its identity.
func site(stage string) error {
	//nolint:forbidigo // the container is the test's
	if err := os.WriteFile("/site-"+stage, []byte(stage+"\n"), 0o644); err != nil {
		return err
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	said := fmt.Sprintf("%s by user %d in stage %s", stage, os.Getuid(), os.Getenv("POD_STARTER_STAGE"))
	for line := range strings.Lines(string(status)) {
		if capabilities, ok := strings.CutPrefix(line, "CapEff:"); ok {
			said += ", capabilities " + strings.TrimSpace(capabilities)
		}
	}
	return print(os.Stdout, said)
}
