package localexec

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"podstarter/payload"
	"podstarter/rescue"
	"podstarter/wrapper/agent"
)

// process is a wrapper's process.
type process struct {
	nonce string
	cmd   *exec.Cmd
	ended context.Context // done when the process has ended, with the cause
}

// maxWords bounds a line of the wrapper's output, in bytes.
const maxWords = 4096

// startWrapper starts the wrapper of a lease, as the first process of a PID namespace if that is wanted. It does not wait for it.
func startWrapper(l *lease, nonce string, ownProcesses bool) (*process, error) {
	b := l.backend
	cmd := exec.Command(b.program, "-companion", "-control", l.dir)
	cmd.Args[0] = agent.WrapperName
	cmd.Dir = "/"
	// Not the starter's environment: it may hold secrets, and the wrapper would pass it on
	// as the image's.
	cmd.Env = []string{payload.NonceEnv + "=" + nonce}
	if l.group != nil {
		cmd.Args = append(cmd.Args, "-group", l.group.Path())
	}
	if l.lock != nil {
		cmd.ExtraFiles = []*os.File{l.lock}
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGTERM}
	if b.mounts || ownProcesses {
		cmd.Args = append(cmd.Args, "-own-mounts")
		cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS
	}
	if ownProcesses {
		cmd.Args = append(cmd.Args, "-own-processes")
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWPID
	}
	if as := b.as; as != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(as.UID), Gid: uint32(as.GID)}
		for _, g := range as.Groups {
			cmd.SysProcAttr.Credential.Groups = append(cmd.SysProcAttr.Credential.Groups, uint32(g))
		}
	}
	words, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	ended, end := context.WithCancelCause(context.Background())
	p := &process{nonce: nonce, cmd: cmd, ended: ended}
	started := make(chan error, 1)
	rescue.Go(func() {
		// The kernel sends the parent death signal when the forking thread ends (prctl(2)),
		// so this thread must live as long as the wrapper.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		relay(b.log, words)
		err = cmd.Wait()
		if err == nil {
			err = fmt.Errorf("it left by itself")
		}
		end(fmt.Errorf("the wrapper has ended: %w", err))
	})
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// relay logs the wrapper's output to its end. If the wrapper crashes, that includes the
// stack.
func relay(log *slog.Logger, words io.Reader) {
	level := slog.LevelDebug
	lines := bufio.NewScanner(words)
	lines.Buffer(make([]byte, 0, 256), maxWords)
	for lines.Scan() {
		if line := lines.Text(); strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			level = slog.LevelError
		}
		log.Log(context.Background(), level, "The wrapper says", "line", lines.Text())
	}
	_, _ = io.Copy(io.Discard, words) // if a line was too long
}

// kill ends the process with SIGKILL.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended.Done()
}
