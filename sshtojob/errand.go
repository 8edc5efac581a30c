package sshtojob

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"

	"podstarter/payload"
	"podstarter/sshtojob/shell"
)

// The names (argv[0]) under which a program that calls [Dispatch] does something
// else.
const (
	errandName = "condor_pod_visit" // the ssh server
	// SFTPName is the server side of sftp, on its standard files.
	SFTPName = "condor_pod_sftp"
	// ShellName is the shell for containers without one; it takes the arguments
	// of sh: none, or -c and a command line.
	ShellName = "condor_pod_sh"
)

// Descriptors of the errand.
const (
	connFD = 3 // the client's connection
	linkFD = 4 // the socket to the starter
)

// errandMemory is when the errand's garbage collector begins to work harder, in
// bytes.
const errandMemory = 16 << 20

// Dispatch does what the process's name asks for, and then does not return. With
// another name it returns at once.
func Dispatch() {
	if len(os.Args) == 0 {
		return
	}
	name := filepath.Base(os.Args[0])
	if name == errandName || name == SFTPName || name == ShellName {
		// It was executed as an open file, and would have that file's name.
		_ = os.WriteFile("/proc/self/comm", []byte(name), 0)
	}
	switch name {
	case errandName:
		debug.SetMemoryLimit(errandMemory)
		if err := errand(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case SFTPName:
		if err := serveFiles(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case ShellName:
		os.Exit(shell.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	default:
		return
	}
	os.Exit(0)
}

// errand runs the ssh server.
func errand() error {
	up, err := newLink(os.NewFile(linkFD, "starter"))
	if err != nil {
		return err
	}
	defer up.close()
	file := os.NewFile(connFD, "client")
	conn, err := net.FileConn(file)
	file.Close()
	if err != nil {
		return fmt.Errorf("open the client's connection: %w", err)
	}
	defer conn.Close()

	var first fromStarter
	if err := up.receive(&first); err != nil || first.Make == nil {
		return fmt.Errorf("wait for the type of the keys: %w", errors.Join(err, errProtocol))
	}
	keys, told, err := makePair(*first.Make)
	if err != nil {
		return err
	}
	if err := up.send(fromErrand{Keys: &told}); err != nil {
		return fmt.Errorf("tell the keys: %w", err)
	}
	var second fromStarter
	if err := up.receive(&second); err != nil || !second.Open {
		return fmt.Errorf("wait until the client has its key: %w", errors.Join(err, errProtocol))
	}
	b := &starter{link: up, asked: map[int64]chan fromStarter{}}
	go func() {
		b.listen()
		// Without the starter nothing more can run.
		conn.Close()
	}()
	return serve(conn, keys, b)
}

var errProtocol = errors.New("the starter sent an unexpected message")

// starter is the errand's connection for requests to the starter.
type starter struct {
	link *link

	mu    sync.Mutex
	last  int64
	asked map[int64]chan fromStarter // nil when the starter is gone
}

// listen passes on answers until the starter is gone.
func (s *starter) listen() {
	for {
		var m fromStarter
		if err := s.link.receive(&m); err != nil {
			break
		}
		s.mu.Lock()
		answers := s.asked[m.ID]
		s.mu.Unlock()
		if answers == nil {
			continue
		}
		select {
		case answers <- m:
		default: // more than a request has
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, answers := range s.asked {
		close(answers)
	}
	s.asked = nil
}

// process is a process that runs for a session.
type process struct {
	starter *starter
	id      int64
	answers chan fromStarter
	welcome string
}

var errStarterGone = errors.New("the job's starter is gone")

// run asks for a process with these files, which the caller still owns.
func (s *starter) run(r Request, files []*os.File) (*process, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.asked == nil {
		s.mu.Unlock()
		return nil, errStarterGone
	}
	s.last++
	// Started or Failed, and Ended.
	p := &process{starter: s, id: s.last, answers: make(chan fromStarter, 2)}
	s.asked[p.id] = p.answers
	s.mu.Unlock()
	if err := s.link.send(fromErrand{ID: p.id, Request: &r}, files...); err != nil {
		p.forget()
		return nil, fmt.Errorf("ask the starter for a process: %w", err)
	}
	m, ok := <-p.answers
	switch {
	case !ok:
		return nil, errStarterGone
	case m.Started == nil:
		p.forget()
		return nil, errors.New(m.Failed)
	}
	p.welcome = m.Started.Welcome
	return p, nil
}

func (p *process) forget() {
	p.starter.mu.Lock()
	defer p.starter.mu.Unlock()
	delete(p.starter.asked, p.id)
}

// wait returns the wait status of the process.
func (p *process) wait(ctx context.Context) (int, error) {
	defer p.forget()
	select {
	case m, ok := <-p.answers:
		if !ok || m.Ended == nil {
			return 0, errStarterGone
		}
		return m.Ended.WaitStatus, nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

func (p *process) signal(n int) {
	// If the starter is gone, so is the process.
	_ = p.starter.link.send(fromErrand{ID: p.id, Signal: n})
}

// terminalOf receives the master side of a terminal.
func terminalOf(near *net.UnixConn) (*os.File, error) {
	r := payload.NewFileReader(near, 1)
	if _, err := r.Read(make([]byte, 1)); err != nil {
		r.Close()
		return nil, fmt.Errorf("wait for the terminal: %w", err)
	}
	files := r.Take(1)
	if len(files) != 1 {
		return nil, errors.New("wait for the terminal: the message had no descriptor")
	}
	return pollable(files[0])
}
