// Package daemon keeps background processes that outlive the program: it starts them, knows them again by process id and
// start time, and stops those and no others.
//
// A process writes its own record just before it becomes the daemon (see Exec), so that there is no moment in which a
// daemon runs and nothing remembers it.
package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/integration/pool/internal/statedir"
)

// Verb is the program's own verb under which Start runs it again; the program's main must hand it to Exec.
const Verb = "exec-daemon"

// A Spec says what a daemon is.
type Spec struct {
	Name string
	// Args are the program's path and its arguments.
	Args []string
	// Env are settings added to the caller's environment.
	Env []string
	// Inputs are further things that the daemon depends on, such as the text of its configuration files: when they, the
	// arguments or Env change, the daemon is restarted.
	Inputs []string
}

// Set is a directory of records and one of logs.
type Set struct {
	Records, Logs string
}

// A Record remembers one running daemon.
type Record struct {
	PID int
	// Start is when the kernel started the process, in clock ticks after boot (proc_pid_stat(5), field 22): together with
	// the process id and the boot it names one process for ever.
	Start uint64
	Boot  string
	Key   string
}

func (s Spec) key() string {
	h := sha256.New()
	for _, part := range [][]string{{s.Name}, s.Args, s.Env, s.Inputs} {
		for _, text := range part {
			fmt.Fprintf(h, "%d:%s,", len(text), text)
		}
		fmt.Fprint(h, ";")
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (d Set) record(name string) string { return filepath.Join(d.Records, name+".json") }

// Log is the path of the log of the daemon called name.
func (d Set) Log(name string) string { return filepath.Join(d.Logs, name+".log") }

// Running returns the record of the daemon called name if it runs.
func (d Set) Running(name string) (Record, bool) {
	var r Record
	text, err := os.ReadFile(d.record(name))
	if err != nil || json.Unmarshal(text, &r) != nil {
		return Record{}, false
	}
	return r, r.Alive()
}

// Alive reports whether the very process that was recorded still runs.
func (r Record) Alive() bool {
	boot, err := bootID()
	if err != nil || boot != r.Boot {
		return false
	}
	start, zombie, err := startTime(r.PID)
	return err == nil && start == r.Start && !zombie
}

// Start makes sure that the daemon runs as spec says. One that runs with other arguments or inputs is stopped first.
// It returns whether a process was started.
func (d Set) Start(ctx context.Context, spec Spec) (bool, error) {
	if len(os.Args) > 1 && os.Args[1] == Verb {
		return false, fmt.Errorf("starting %s: this process is to become a daemon itself; the main of %s must call Exec", spec.Name, os.Args[0])
	}
	if r, ok := d.Running(spec.Name); ok {
		if r.Key == spec.key() {
			return false, nil
		}
		if err := d.Stop(ctx, spec.Name, 20*time.Second); err != nil {
			return false, err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return false, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	for _, dir := range []string{d.Records, d.Logs} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return false, fmt.Errorf("starting %s: %w", spec.Name, err)
		}
	}
	log, err := os.OpenFile(d.Log(spec.Name), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return false, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	defer log.Close()
	cmd := exec.Command(self, append([]string{Verb, d.record(spec.Name), spec.key()}, spec.Args...)...)
	cmd.Env = append(os.Environ(), spec.Env...)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return false, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	exited := make(chan error, 1)
	go func() { exited <- cmd.Wait() }()
	return true, d.waitRecorded(ctx, spec, cmd.Process.Pid, exited)
}

// waitRecorded waits until the process has written its record, which takes a few milliseconds.
func (d Set) waitRecorded(ctx context.Context, spec Spec, pid int, exited <-chan error) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if r, ok := d.Running(spec.Name); ok && r.PID == pid {
			return nil
		}
		select {
		case err := <-exited:
			return fmt.Errorf("starting %s: it ended at once (%v); see %s", spec.Name, err, d.Log(spec.Name))
		case <-ctx.Done():
			return fmt.Errorf("starting %s: %w", spec.Name, ctx.Err())
		case <-tick.C:
		}
	}
}

// Exec is the body of the program's verb Verb: it records the calling process and then becomes the daemon.
// args are the record's path, the daemon's key, and the daemon's own arguments. It returns only on failure.
func Exec(args []string) error {
	if len(args) < 3 {
		return errors.New("usage: " + Verb + " RECORD KEY PROGRAM ARG…")
	}
	boot, err := bootID()
	if err != nil {
		return err
	}
	start, _, err := startTime(os.Getpid())
	if err != nil {
		return err
	}
	r := Record{PID: os.Getpid(), Start: start, Boot: boot, Key: args[1]}
	if err := statedir.WriteJSON(args[0], r); err != nil {
		return err
	}
	path, err := exec.LookPath(args[2])
	if err != nil {
		return fmt.Errorf("becoming the daemon: %w", err)
	}
	if err := restoreSignals(); err != nil {
		return err
	}
	return fmt.Errorf("becoming the daemon %s: %w", path, syscall.Exec(path, args[2:], os.Environ()))
}

// Stop ends the daemon called name: a polite signal, then, after the grace period, SIGKILL. A daemon that does not run is
// no error.
func (d Set) Stop(ctx context.Context, name string, grace time.Duration) error {
	r, ok := d.Running(name)
	if ok {
		if err := r.stop(ctx, grace); err != nil {
			return fmt.Errorf("stopping %s (process %d): %w", name, r.PID, err)
		}
	}
	if err := os.Remove(d.record(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forgetting %s: %w", name, err)
	}
	return nil
}

func (r Record) stop(ctx context.Context, grace time.Duration) error {
	fd, err := unix.PidfdOpen(r.PID, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	// The descriptor pins the process; only now does the check of its start time say who gets the signal.
	if !r.Alive() {
		return nil
	}
	for _, step := range []struct {
		signal unix.Signal
		wait   time.Duration
	}{{unix.SIGTERM, grace}, {unix.SIGKILL, 10 * time.Second}} {
		if err := unix.PidfdSendSignal(fd, step.signal, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
		if waitExit(ctx, fd, step.wait) {
			return nil
		}
	}
	return errors.New("it does not end, even by SIGKILL")
}

// waitExit waits until the process behind a pidfd has ended; a pidfd becomes readable then (pidfd_open(2)).
func waitExit(ctx context.Context, fd int, wait time.Duration) bool {
	deadline := time.Now().Add(wait)
	for ctx.Err() == nil && time.Now().Before(deadline) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(fds, 100); err == nil && n > 0 {
			return true
		}
	}
	return false
}

// Names returns the names of all daemons that have a record.
func (d Set) Names() ([]string, error) {
	entries, err := os.ReadDir(d.Records)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing daemons: %w", err)
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok {
			names = append(names, name)
		}
	}
	return names, nil
}
