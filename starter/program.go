package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/condor/shadow"
	"podstarter/rescue"
	"podstarter/sandbox"
	"podstarter/starter/failure"
)

// program is a program of the site that is run in the pilot container, beside
// the starter.
type program struct {
	path  string
	args  []string // behind argv[0], which is path
	env   []string
	dir   string
	stdin []byte
	as    sandbox.Owner // sandbox.Self() for the starter's own user
	group int           // in place of nobodysGroup
	limit time.Duration // 0: as long as its context
	// untrusted is for what a job brings or rules: setuid programs give it no
	// rights, it is asked to end before it is killed, and less of its output is kept.
	untrusted bool
	confined  confinement // what is left to it
}

// output of a program that is kept, in bytes. The rest is read and dropped.
const (
	maxProgramOutput   = 4 << 20
	maxProgramErrors   = 64 << 10
	maxUntrustedOutput = 128 << 10
	maxUntrustedTail   = 16 << 10
)

// outcome is how a program ended.
type outcome struct {
	status         syscall.WaitStatus
	stdout, stderr []byte
	tail           []byte // the end of stdout, of an untrusted program that wrote more
	cut            bool   // stdout was longer than maxProgramOutput
	late           bool   // it was killed after its limit
}

// closeOnExec keeps what is open in this process from those that it executes, also
// what it was started with.
func closeOnExec() error {
	const first = 3
	err := unix.CloseRange(first, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	names, e := os.ReadDir("/proc/self/fd") // a kernel before 5.11
	if e != nil {
		return fmt.Errorf("close descriptors: %w", errors.Join(err, e))
	}
	for _, name := range names {
		if fd, err := strconv.Atoi(name.Name()); err == nil && fd >= first {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// errNotRun is in the chain of the error of a program that did not start.
var errNotRun = errors.New("cannot be run")

// notBegun says what it means that a program could not be begun. Where the pod has no
// more processes, or no memory for one, that is nothing of the program's or the job's: it is not in the
// chain of errNotRun, and sends the job back to the queue.
func notBegun(path string, err error) error {
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOMEM) {
		return failure.New(shadow.VacateContainerError, 0, fmt.Errorf("this pod has no room for another process to run %s: %w", path, err))
	}
	return fmt.Errorf("%s %w: %w", path, errNotRun, err)
}

// nobodysGroup is the group of programs that run as the payload's user. The
// kernel lets a process trace another, or look at its files and memory, if user
// and group are its own (ptrace(2), "Ptrace access mode checking"): without this
// a job in a pod with a shared PID namespace could reach the pilot container's
// files through a hook. No payload is in this group.
const nobodysGroup = 65534

// run runs the program to its end, and ends with it what it started and left in
// its process group. Both streams may be one: see combined. The program dies with
// the starter.
func (p program) run(ctx context.Context, combined bool) (outcome, error) {
	defer p.confined.close()
	type end struct {
		outcome
		err error
	}
	done := make(chan end, 1)
	// The parent death signal is sent when the thread ends that forked
	// (prctl(2)), so it is kept until the program has ended.
	onThread := func() {
		var o outcome
		var err error
		if p.untrusted || p.confined.takes() {
			err = closeOnExec()
		}
		if err == nil && p.confined.takes() {
			err = p.confined.apply(p.path)
		}
		if err == nil {
			err = rescue.Do(func() (err error) { o, err = p.runOnThread(ctx, combined); return err })
		} else {
			err = fmt.Errorf("%s %w: %w", p.path, errNotRun, err)
		}
		done <- end{o, err}
	}
	if p.untrusted || p.confined.takes() {
		if err := onLesserThread(p.confined.takes(), onThread); err != nil {
			return outcome{}, fmt.Errorf("%s %w: %w", p.path, errNotRun, err)
		}
	} else {
		rescue.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			onThread()
		})
	}
	e := <-done
	return e.outcome, e.err
}

func (p program) runOnThread(ctx context.Context, combined bool) (o outcome, err error) {
	within := ctx
	if p.limit > 0 {
		var release context.CancelFunc
		within, release = context.WithTimeout(ctx, p.limit)
		defer release()
	}
	stdout, stderr := &capped{most: maxProgramOutput}, &capped{most: maxProgramErrors}
	if p.untrusted {
		stdout.most, stdout.mostTail = maxUntrustedOutput, maxUntrustedTail
	}
	cmd := exec.CommandContext(within, p.path, p.args...)
	cmd.Env, cmd.Dir = p.env, p.dir
	if p.stdin != nil {
		cmd.Stdin = bytes.NewReader(p.stdin)
	}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if combined {
		cmd.Stderr = stdout
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if p.as.Switches() {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(p.as.UID), Gid: nobodysGroup}
		if p.group != 0 {
			cmd.SysProcAttr.Credential.Gid = uint32(p.group)
		}
	}
	group := func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.Cancel = group
	if p.untrusted { // as stock: a second after this it is killed (my_popen.cpp:close_program)
		cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGTERM) }
	}
	cmd.WaitDelay = time.Second // what left the group may hold the streams open
	if err := cmd.Start(); err != nil {
		if ctx.Err() != nil {
			return o, context.Cause(ctx)
		}
		return o, notBegun(p.path, err)
	}
	// Until it is waited for, its number is not another's.
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	_ = group()
	err = cmd.Wait()
	o.stdout, o.stderr, o.cut = stdout.data, stderr.data, stdout.cut
	if stdout.cut {
		o.tail = stdout.tail
	}
	if cmd.ProcessState != nil {
		o.status, _ = cmd.ProcessState.Sys().(syscall.WaitStatus)
	}
	switch exit := (*exec.ExitError)(nil); {
	case ctx.Err() != nil:
		return o, context.Cause(ctx)
	case within.Err() != nil:
		o.late = true
		return o, nil
	case err == nil, errors.As(err, &exit), errors.Is(err, exec.ErrWaitDelay):
		return o, nil
	default:
		return o, fmt.Errorf("wait for %s: %w", p.path, err)
	}
}

// capped keeps the beginning of what is written to it, and the end if mostTail says
// how much of it.
type capped struct {
	data, tail     []byte
	most, mostTail int
	cut            bool
}

func (c *capped) Write(p []byte) (int, error) {
	keep := p[:min(len(p), c.most-len(c.data))]
	c.data = append(c.data, keep...)
	c.cut = c.cut || len(keep) < len(p)
	if c.mostTail > 0 {
		end := p[max(0, len(p)-c.mostTail):]
		if over := len(c.tail) + len(end) - c.mostTail; over > 0 {
			c.tail = append(c.tail[:0], c.tail[over:]...)
		}
		c.tail = append(c.tail, end...)
	}
	return len(p), nil
}

// describe says how a program ended, for the log.
func (o outcome) describe() string {
	switch {
	case o.late:
		return "took too long and was killed"
	case o.status.Signaled():
		return fmt.Sprintf("died of signal %d", int(o.status.Signal()))
	default:
		return fmt.Sprintf("exited with status %d", o.status.ExitStatus())
	}
}

// excerpt is the end of a program's output, for a message.
func excerpt(output []byte) string {
	const most = 500
	text := strings.TrimSpace(strings.ToValidUTF8(string(output), "?"))
	if len(text) > most {
		text = "..." + strings.ToValidUTF8(text[len(text)-most:], "?")
	}
	return text
}

// payloadUser is who programs run as that stock runs as the job's user. Without
// root there is only one user.
func (a *activation) payloadUser() sandbox.Owner {
	if os.Getuid() != 0 {
		return sandbox.Self()
	}
	return a.sandbox.Payload()
}
