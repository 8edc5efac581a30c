package hostprog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/condor/shadow"
	"podstarter/rescue"
	"podstarter/sandbox"
	"podstarter/starter/failure"
)

// Program is a program of the site that runs in the pilot container, beside the
// starter.
type Program struct {
	Path  string
	Args  []string // behind argv[0], which is Path
	Env   []string
	Dir   string
	Stdin []byte
	As    sandbox.Owner // sandbox.Self() for the starter's own user
	Limit time.Duration // 0: as long as its context

	// From and To, if not nil, are its standard input and output, in place of Stdin and
	// what the Outcome would have.
	From, To *os.File
	// Heard, if not nil, gets standard error as it comes, beside what the Outcome has of it.
	Heard io.Writer

	group int // in place of nobodysGroup
	// untrusted is for what a job brings or controls: setuid programs give it no
	// rights, it is asked to end before it is killed, and less of its output is kept.
	untrusted bool
	confined  confinement    // what it may use
	threads   *lesserThreads // for an untrusted or a confined program
}

// ErrNotRun is in the chain of the error of a program that did not start.
var ErrNotRun = errors.New("cannot be run")

// notBegun is the error of a program that could not be started. If the pod has no more
// processes, or no memory for one, neither program nor job is to blame: the error is
// not ErrNotRun, and sends the job back to the queue.
func notBegun(path string, err error) error {
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOMEM) {
		return failure.New(shadow.VacateContainerError, 0, fmt.Errorf("this pod has no room for another process to run %s: %w", path, err))
	}
	return fmt.Errorf("%s %w: %w", path, ErrNotRun, err)
}

// nobodysGroup is the group of programs that run as the payload's user. The
// kernel lets a process trace another, or look at its files and memory, if user
// and group are its own (ptrace(2), "Ptrace access mode checking"): without this
// a job in a pod with a shared PID namespace could reach the pilot container's
// files through a hook. No payload is in this group.
const nobodysGroup = 65534

// Run runs the program to its end, and then kills what it left in its process group.
// With combined, standard error goes where standard output goes. The program dies with
// the starter. When ctx ends first, the error is the cause.
func (p Program) Run(ctx context.Context, combined bool) (Outcome, error) {
	defer p.confined.close()
	type end struct {
		Outcome
		err error
	}
	done := make(chan end, 1)
	// The parent death signal is sent when the thread ends that forked
	// (prctl(2)), so the thread is kept until the program has ended.
	onThread := func() {
		var o Outcome
		var err error
		if p.untrusted || p.confined.takes() {
			err = closeOnExec()
		}
		if err == nil && p.confined.takes() {
			err = p.confined.apply(p.Path)
		}
		if err == nil {
			err = rescue.Do(func() (err error) { o, err = p.runOnThread(ctx, combined); return err })
		} else {
			err = fmt.Errorf("%s %w: %w", p.Path, ErrNotRun, err)
		}
		done <- end{o, err}
	}
	if p.untrusted || p.confined.takes() {
		if err := p.threads.do(p.confined.takes(), onThread); err != nil {
			return Outcome{}, fmt.Errorf("%s %w: %w", p.Path, ErrNotRun, err)
		}
	} else {
		rescue.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			onThread()
		})
	}
	e := <-done
	return e.Outcome, e.err
}

func (p Program) runOnThread(ctx context.Context, combined bool) (o Outcome, err error) {
	within := ctx
	if p.Limit > 0 {
		var release context.CancelFunc
		within, release = context.WithTimeout(ctx, p.Limit)
		defer release()
	}
	stdout, stderr := &capped{most: maxProgramOutput}, &capped{most: maxProgramErrors}
	if p.untrusted {
		stdout.most, stdout.mostTail = maxUntrustedOutput, maxUntrustedTail
	}
	cmd := exec.CommandContext(within, p.Path, p.Args...)
	cmd.Env, cmd.Dir = p.Env, p.Dir
	if p.Stdin != nil {
		cmd.Stdin = bytes.NewReader(p.Stdin)
	}
	if p.From != nil {
		cmd.Stdin = p.From
	}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if p.Heard != nil {
		cmd.Stderr = io.MultiWriter(stderr, p.Heard)
	}
	if p.To != nil {
		cmd.Stdout = p.To
	}
	if combined {
		cmd.Stderr = stdout
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if p.As.Switches() {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(p.As.UID), Gid: nobodysGroup}
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
		return o, notBegun(p.Path, err)
	}
	// Until it is waited for, no other process gets its number.
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	_ = group()
	err = cmd.Wait()
	o.Stdout, o.Stderr, o.Cut = stdout.data, stderr.data, stdout.cut
	if stdout.cut {
		o.Tail = stdout.tail
	}
	if cmd.ProcessState != nil {
		o.Status, _ = cmd.ProcessState.Sys().(syscall.WaitStatus)
	}
	switch exit := (*exec.ExitError)(nil); {
	case ctx.Err() != nil:
		return o, context.Cause(ctx)
	case within.Err() != nil:
		o.Late = true
		return o, nil
	case err == nil, errors.As(err, &exit), errors.Is(err, exec.ErrWaitDelay):
		return o, nil
	default:
		return o, fmt.Errorf("wait for %s: %w", p.Path, err)
	}
}
