package channel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A session is one command that runs for one client.
type session struct {
	cmd     *exec.Cmd
	out     *sender
	stdin   *queue
	input   *os.File
	outputs []*output
	signals chan syscall.Signal
	// ended is closed when the command has ended; signals are dropped from then on.
	ended chan struct{}
}

// An output is one of the command's two output streams.
type output struct {
	kind    frameType
	pipe    *os.File
	credits credits
}

// start starts the command of a request.
func start(f frame, out *sender) (*session, error) {
	if f.kind != frameRequest {
		return nil, fmt.Errorf("the first frame is of type %q, not the command", byte(f.kind))
	}
	var r request
	if err := json.Unmarshal(f.data, &r); err != nil {
		return nil, fmt.Errorf("reading the command: %w", err)
	}
	if len(r.Args) == 0 {
		return nil, errors.New("the command has no program")
	}
	cmd := &exec.Cmd{Args: toStrings(r.Args), Dir: string(r.Dir), Env: toStrings(r.Env)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if cmd.Dir != "" {
		// Without this, the error for a missing directory names the program.
		if _, err := os.Stat(cmd.Dir); err != nil {
			return nil, fmt.Errorf("changing the directory: %w", err)
		}
	}
	var err error
	if cmd.Path, err = lookPath(cmd.Args[0], cmd.Environ()); err != nil {
		return nil, err
	}
	s := &session{cmd: cmd, out: out, stdin: newQueue(), signals: make(chan syscall.Signal), ended: make(chan struct{})}
	var theirs []io.Closer
	defer func() {
		for _, c := range theirs {
			c.Close()
		}
	}()
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	stdin, input := pipe()
	stdout, outPipe := pipe()
	stderr, errPipe := pipe()
	theirs = append(theirs, stdin, outPipe, errPipe)
	ours := []io.Closer{input, stdout, stderr}
	if err == nil {
		cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, outPipe, errPipe
		err = cmd.Start()
	}
	if err != nil {
		for _, c := range ours {
			c.Close()
		}
		return nil, err
	}
	s.input = input
	s.outputs = []*output{{frameStdout, stdout, newCredits()}, {frameStderr, stderr, newCredits()}}
	return s, nil
}

// lookPath is exec.LookPath with the PATH of env.
func lookPath(program string, env []string) (string, error) {
	if strings.Contains(program, "/") {
		return program, nil
	}
	var path string
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, "PATH="); ok {
			path = value
		}
	}
	for _, dir := range filepath.SplitList(path) {
		file := filepath.Join(dir, program)
		if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if unix.Faccessat(unix.AT_FDCWD, file, unix.X_OK, unix.AT_EACCESS) == nil {
			return file, nil
		}
	}
	return "", &exec.Error{Name: program, Err: fmt.Errorf("%w in the PATH %q", fs.ErrNotExist, path)}
}

// receive takes the client's frames until the client ends the connection.
func (s *session) receive(conn net.Conn) error {
	for {
		f, err := readFrame(conn)
		if errors.Is(err, io.EOF) {
			return errGone
		}
		if err != nil {
			return fmt.Errorf("reading from the client: %w", err)
		}
		if err := s.take(f); err != nil {
			return fmt.Errorf("reading from the client: %w", err)
		}
	}
}

func (s *session) take(f frame) error {
	switch f.kind {
	case frameStdin:
		return s.stdin.add(f.data)
	case frameStdinEnd:
		s.stdin.end()
		return nil
	case frameSignal:
		signal := syscall.Signal(f.data[0])
		if signal < 1 || signal > 64 {
			return fmt.Errorf("there is no signal %d", signal)
		}
		select {
		case s.signals <- signal:
		case <-s.ended:
		}
		return nil
	case frameCredit:
		for _, o := range s.outputs {
			if byte(o.kind) == f.data[0] {
				return o.credits.add()
			}
		}
		return fmt.Errorf("a credit for %q, which is no output", f.data[0])
	default:
		return fmt.Errorf("a frame of type %q, which a client does not send here", byte(f.kind))
	}
}

// wait passes on input, output and signals until the command ends. If the context ends first, it kills the command and
// returns the context's cause.
func (s *session) wait(ctx context.Context) (syscall.WaitStatus, error) {
	var input, outputs sync.WaitGroup
	input.Go(s.passInput)
	for _, o := range s.outputs {
		outputs.Go(func() { o.pass(ctx, s.out) })
	}
	s.steer(ctx)
	close(s.ended)
	// The first process has ended but is not yet reaped, so its number still names this process group and no other.
	_ = unix.Kill(-s.cmd.Process.Pid, unix.SIGKILL)
	err := s.cmd.Wait()
	s.input.Close()
	for _, o := range s.outputs {
		// It fails if the output has already ended.
		_ = o.pipe.SetReadDeadline(time.Unix(1, 0))
	}
	input.Wait()
	outputs.Wait()
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	status, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok {
		return 0, fmt.Errorf("waiting for its end: %w", err)
	}
	return status, nil
}

// steer passes on signals until the command's first process has ended. It kills that process when the context ends.
func (s *session) steer(ctx context.Context) {
	pid := s.cmd.Process.Pid
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		for {
			if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); !errors.Is(err, unix.EINTR) {
				return
			}
		}
	}()
	for {
		select {
		case signal := <-s.signals:
			target := pid
			if signal == syscall.SIGINT {
				target = -pid
			}
			_ = unix.Kill(target, signal)
		case <-ctx.Done():
			_ = unix.Kill(pid, unix.SIGKILL)
			<-exited
			return
		case <-exited:
			return
		}
	}
}

// passInput gives the command its standard input. A command that closed it gets no more, and the client no credits.
func (s *session) passInput() {
	defer s.input.Close()
	for {
		select {
		case data, ok := <-s.stdin.frames:
			if !ok {
				return
			}
			if _, err := s.input.Write(data); err != nil {
				return
			}
			_ = s.out.send(frameCredit, byte(frameStdin))
		case <-s.ended:
			return
		}
	}
}

// pass sends the output to the client until its end. The end of the command shows as a deadline; processes that outlive
// the command may still hold the pipe, so pass then sends what is in the pipe, and no more.
func (o *output) pass(ctx context.Context, out *sender) {
	defer o.pipe.Close()
	buf := make([]byte, chunkSize)
	left := -1
	for left != 0 {
		some := buf
		if left > 0 {
			some = buf[:min(left, len(buf))]
		}
		n, err := o.pipe.Read(some)
		if n > 0 {
			select {
			case <-o.credits:
			case <-ctx.Done():
				return
			}
			if out.send(o.kind, some[:n]...) != nil {
				return
			}
		}
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			if left, err = inPipe(o.pipe); err != nil {
				return
			}
			_ = o.pipe.SetReadDeadline(time.Time{})
		case err != nil:
			return
		case left > 0:
			left -= n
		}
	}
}

// inPipe is the number of bytes in the pipe (pipe(7) calls the request FIONREAD, which has the same number).
func inPipe(pipe *os.File) (n int, err error) {
	raw, err := pipe.SyscallConn()
	if err != nil {
		return 0, err
	}
	if ctl := raw.Control(func(fd uintptr) { n, err = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }); ctl != nil {
		return 0, ctl
	}
	return n, err
}
