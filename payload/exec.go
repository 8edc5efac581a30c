package payload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Exec says how to start another process beside the payload's main process, usually a
// session of the user.
type Exec struct {
	// Spec as for a start. Its user must be the current run's; it has no Link and no files
	// by name. Without Path, Args are for the program in [ExecFiles.Program].
	Spec Spec
	// Others are tried in turn if Spec.Path is missing or cannot be executed; the first that
	// can be executed becomes the process.
	Others []Attempt
	// Terminal, if not nil, asks for a terminal in the process's container.
	Terminal *Terminal
}

// Attempt is a program to try, with its whole argument vector.
type Attempt struct {
	// Path of the program, looked up as in the [Spec]; empty for the program in
	// [ExecFiles.Program].
	Path string
	Args []string
}

// Terminal is the size of a terminal in characters.
type Terminal struct {
	Rows    uint16 `json:"rows"`
	Columns uint16 `json:"columns"`
}

// ExecFiles are open files for a process; the caller keeps and closes them.
type ExecFiles struct {
	// Program is what an [Attempt] without a path executes; nil for none. It
	// need not be in the container.
	Program *os.File
	// Stdio are standard input, output and error; unused with a terminal.
	Stdio [3]*os.File
	// Channel, with a terminal, is a connected Unix stream socket. The wrapper sends one
	// byte on it, with the master side of the terminal (SCM_RIGHTS).
	Channel *os.File
}

// Bounds of an [Exec].
const (
	maxAttempts = 16
	// MaxExecFiles is the most files that come with a request.
	MaxExecFiles = 4
	// MaxExecutions is how many such processes may exist at a time.
	MaxExecutions = 64
)

// list gives the files in the order of the protocol.
func (f ExecFiles) list(terminal bool) ([]*os.File, error) {
	files := f.Stdio[:]
	if terminal {
		files = []*os.File{f.Channel}
	}
	if f.Program != nil {
		files = append([]*os.File{f.Program}, files...)
	}
	if slices.Contains(files, nil) {
		return nil, errors.New("a file that the process needs is missing")
	}
	return files, nil
}

// Checked is the spec in a form that can be checked like that of a start.
func (e *Exec) Checked() *Spec {
	s := e.Spec
	if s.Path == "" && len(s.Args) > 0 {
		s.Path = s.Args[0]
	}
	return &s
}

// Validate is Spec.Validate with the checks for an Exec.
func (e *Exec) Validate() error {
	if err := e.Checked().Validate(); err != nil {
		return err
	}
	if s := &e.Spec; len(s.Links) > 0 || s.Mounts != nil || s.Stdin != "" || s.Stdout != "" || s.Stderr != "" || s.Append ||
		len(s.Passed) > 0 || len(s.Program) > 0 || s.Itself || s.AsRoot || s.Capture > 0 || s.Rehearse {
		return errors.New("a process beside the payload can have no link, no mount, no files by name, and nothing else that is only for a run")
	}
	if len(e.Others) > maxAttempts {
		return fmt.Errorf("%d programs to try, at most %d are allowed", len(e.Others), maxAttempts)
	}
	for i, a := range e.Others {
		if len(a.Path) >= maxPath || strings.IndexByte(a.Path, 0) >= 0 {
			return fmt.Errorf("program %d to try has a NUL byte or %d bytes or more", i, maxPath)
		}
		if a.Path == "" && len(a.Args) == 0 {
			return fmt.Errorf("program %d to try has no name", i)
		}
		for _, arg := range a.Args {
			if strings.IndexByte(arg, 0) >= 0 {
				return fmt.Errorf("an argument of program %d to try has a NUL byte", i)
			}
		}
	}
	return nil
}

// Executing is the answer to an exec request whose process reached execve(2).
type Executing struct {
	// PID in the wrapper's PID namespace.
	PID  int       `json:"pid"`
	Time time.Time `json:"time"`
}

// ExecExit reports the end of such a process.
type ExecExit struct {
	// Exec is the ID of the request that started it.
	Exec int64 `json:"exec"`
	// WaitStatus as in [Exit].
	WaitStatus int `json:"wait_status"`
}

// execution is an [Execution] that a [Client] has started.
type execution struct {
	executing Executing
	client    *Client
	id        int64
	ended     chan struct{}
	status    syscall.WaitStatus // valid once ended is closed
}

// Exec starts a process beside the payload's main process; see [Exec]. A failure
// to start is a *[StartError].
func (c *Client) Exec(ctx context.Context, e Exec, files ExecFiles) (Execution, error) {
	if err := e.Validate(); err != nil {
		return nil, &StartError{Stage: StageSpec, Detail: err.Error()}
	}
	passed, err := files.list(e.Terminal != nil)
	if err != nil {
		return nil, &StartError{Stage: StageSpec, Detail: err.Error()}
	}
	x := &execution{client: c, ended: make(chan struct{})}
	m, err := c.callFor(ctx, x, Request{Op: OpExec, Exec: &e}, passed...)
	switch {
	case err != nil:
		return nil, err
	case m.StartError != nil:
		return nil, m.StartError
	case m.Executing != nil:
		x.executing = *m.Executing
		return x, nil
	}
	return nil, c.protocolError("no answer to an exec request in %+v", m)
}

// PID implements [Execution].
func (x *execution) PID() int { return x.executing.PID }

// Wait implements [Execution].
func (x *execution) Wait(ctx context.Context) (syscall.WaitStatus, error) {
	select {
	case <-x.ended:
		return x.status, nil
	case <-x.client.lost:
	case <-ctx.Done():
		return 0, fmt.Errorf("wait for process %d: %w", x.PID(), context.Cause(ctx))
	}
	select {
	case <-x.ended:
		return x.status, nil
	default:
		return 0, x.client.lostCause()
	}
}

// Signal implements [Execution].
func (x *execution) Signal(ctx context.Context, sig syscall.Signal) error {
	return x.client.do(ctx, Request{Op: OpSignal, Signal: int(sig), Of: x.id})
}

// wireExec is Exec as it goes over the socket.
type wireExec struct {
	Spec     *Spec         `json:"spec"`
	Others   []wireAttempt `json:"others,omitempty"`
	Terminal *Terminal     `json:"terminal,omitempty"`
}

type wireAttempt struct {
	Path raw   `json:"path,omitempty"`
	Args []raw `json:"args,omitempty"`
}

// MarshalJSON implements json.Marshaler.
func (e Exec) MarshalJSON() ([]byte, error) {
	w := wireExec{Spec: &e.Spec, Terminal: e.Terminal}
	for _, a := range e.Others {
		w.Others = append(w.Others, wireAttempt{raw(a.Path), rawList(a.Args)})
	}
	return json.Marshal(w)
}

// UnmarshalJSON implements json.Unmarshaler.
func (e *Exec) UnmarshalJSON(data []byte) error {
	var w wireExec
	if err := unmarshalStrict(data, &w); err != nil {
		return err
	}
	if w.Spec == nil {
		return errors.New("an exec request without a spec")
	}
	*e = Exec{Spec: *w.Spec, Terminal: w.Terminal}
	for _, a := range w.Others {
		e.Others = append(e.Others, Attempt{string(a.Path), stringList(a.Args)})
	}
	return nil
}
