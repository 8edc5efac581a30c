package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// result is the outcome of one run of a test program.
type result struct {
	failed bool
	late   bool     // it did not end in time
	tests  []string // that failed
	output string
}

// ordinaryUser is a user and group ID that nobody has; if this program is root, the tests
// run as it.
var ordinaryUser = uint32(2_100_000_000 + os.Getpid())

// run runs tests of a program in the directory of its package.
func (w *workshop) run(ctx context.Context, program string, of tests, limit time.Duration) (result, error) {
	home, err := os.MkdirTemp(w.dir, "home")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(home)
	// The program ends itself and says where it hangs; the context ends one that cannot.
	ctx, cancel := context.WithTimeout(ctx, limit+limit/2)
	defer cancel()
	args := []string{"-test.count=1", "-test.timeout=" + limit.String()}
	if of.Run != "" {
		args = append(args, "-test.run="+of.Run)
	}
	var output bytes.Buffer
	command := exec.CommandContext(ctx, program, args...)
	command.Dir = filepath.Join(w.root, of.Package)
	command.Env = append(os.Environ(), "HOME="+home, "TMPDIR="+home)
	command.Stdout, command.Stderr = &output, &output
	command.WaitDelay = time.Second // its children may hold its output open
	if os.Geteuid() == 0 {
		if err := os.Chown(home, int(ordinaryUser), int(ordinaryUser)); err != nil {
			return result{}, err
		}
		command.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: ordinaryUser, Gid: ordinaryUser}}
	}
	err = command.Run()
	endOrphans()
	var exit *exec.ExitError
	switch {
	case err == nil || errors.Is(err, exec.ErrWaitDelay) && command.ProcessState.Success():
	case ctx.Err() == nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay):
		return result{}, fmt.Errorf("run the tests of %s: %w", of.Package, err)
	}
	r := result{failed: err != nil && !command.ProcessState.Success(), output: output.String()}
	r.late = ctx.Err() != nil || strings.Contains(r.output, "panic: test timed out after ")
	r.tests = failures(r.output)
	if !r.failed && strings.Contains(r.output, "testing: warning: no tests to run") {
		return r, fmt.Errorf("%s has no test %s", of.Package, of.Run)
	}
	return r, nil
}

var failure = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// failures lists the tests that failed, from a test program's output.
func failures(output string) []string {
	var names []string
	for _, match := range failure.FindAllStringSubmatch(output, -1) {
		if !slices.Contains(names, match[1]) {
			names = append(names, match[1])
		}
	}
	return names
}

const prSetChildSubreaper = 36 // prctl(2)

// adopt makes this process the parent of processes that tests leave behind: a mutant may
// fail to end a process.
func adopt() error {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0); errno != 0 {
		return fmt.Errorf("take over orphans (PR_SET_CHILD_SUBREAPER): %w", errno)
	}
	return nil
}

// endOrphans kills the children of this process until there are none.
func endOrphans() {
	for {
		for _, pid := range children() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if _, err := syscall.Wait4(-1, nil, 0, nil); err != nil && !errors.Is(err, syscall.EINTR) {
			return // ECHILD
		}
	}
}

func children() []int {
	own := strconv.Itoa(os.Getpid())
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	var pids []int
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// pid (name) state parent ...; the name may hold anything (proc(5)).
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && len(fields) > 1 && fields[1] == own {
			pids = append(pids, pid)
		}
	}
	return pids
}
