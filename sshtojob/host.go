package sshtojob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/payload"
	"podstarter/rescue"
)

// Options describe a visit.
type Options struct {
	// Conn is the client's connection, before the first byte of ssh. The visit
	// has a copy of it; the caller closes its own.
	Conn net.Conn
	// Keys says which keys to make.
	Keys KeyType
	// Run starts a process of a session. The files are closed afterwards. The
	// user sees the error.
	Run func(ctx context.Context, r Request, files payload.ExecFiles) (p Process, welcome string, err error)
	// Log gets the messages of the ssh server; nil for none.
	Log *slog.Logger
}

// Process is a process of a session; [payload.Execution] is one.
type Process interface {
	Wait(ctx context.Context) (syscall.WaitStatus, error)
	Signal(ctx context.Context, sig syscall.Signal) error
}

// Visit is an ssh server that runs for one connection.
type Visit struct {
	keys    Keys
	options Options
	command *exec.Cmd
	link    *link
	stop    context.CancelFunc
	done    chan struct{}
}

// nobody is the user of an ssh server whose starter is root: it has no other
// processes and owns no files.
const nobody = 65534

// keyTime limits the making of keys. The largest RSA keys take seconds.
const keyTime = time.Minute

// Begin starts an ssh server and has it make its keys. The server does not read
// from the client before [Visit.Open].
func Begin(ctx context.Context, o Options) (*Visit, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	v := &Visit{options: o, done: make(chan struct{})}
	far, err := v.start()
	if err != nil {
		return nil, fmt.Errorf("start an ssh server: %w", err)
	}
	far.Close()
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	v.stop = stop
	rescue.Go(v.await)
	if err := v.greet(ctx); err != nil {
		v.Close()
		return nil, fmt.Errorf("start an ssh server: %w", err)
	}
	rescue.Go(func() { v.serve(running) })
	return v, nil
}

// start starts the process and returns its end of the socket.
func (v *Visit) start() (*os.File, error) {
	holder, ok := v.options.Conn.(interface{ File() (*os.File, error) })
	if !ok {
		return nil, fmt.Errorf("a connection of type %T cannot be passed on", v.options.Conn)
	}
	conn, err := holder.File()
	if err != nil {
		return nil, fmt.Errorf("pass the connection on: %w", err)
	}
	defer conn.Close()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	far := os.NewFile(uintptr(pair[1]), "ssh server")
	if v.link, err = newLink(os.NewFile(uintptr(pair[0]), "ssh server")); err != nil {
		far.Close()
		return nil, err
	}
	v.command = &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{errandName}, Dir: "/", Env: []string{},
		ExtraFiles: []*os.File{conn, far}, // connFD, linkFD
		Stderr:     &lines{v.options.Log},
		// The server must not get signals of the starter's terminal, if there is
		// one.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
		WaitDelay:   time.Second,
	}
	if os.Geteuid() == 0 {
		v.command.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	if err := v.command.Start(); err != nil {
		far.Close()
		v.link.close()
		return nil, err
	}
	return far, nil
}

// lines logs what is written, a line or a part of it at a time.
type lines struct{ log *slog.Logger }

const maxLogged = 1000

func (l *lines) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		l.log.Debug("ssh server: " + strings.TrimSpace(line[:min(len(line), maxLogged)]))
	}
	return len(p), nil
}

// await waits for the end of the process.
func (v *Visit) await() {
	_ = v.command.Wait()
	v.stop()
	v.link.close()
	close(v.done)
}

// greet waits for the keys.
func (v *Visit) greet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, keyTime)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = v.link.conn.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := v.link.send(fromStarter{Make: &v.options.Keys}); err != nil {
		return err
	}
	var m fromErrand
	if err := v.link.receive(&m); err != nil {
		return fmt.Errorf("wait for its keys: %w", errors.Join(err, context.Cause(ctx)))
	}
	if m.Keys == nil {
		return errors.New("wait for its keys: it sent an unexpected message")
	}
	v.keys = *m.Keys
	return nil
}

// Keys returns what to tell the client.
func (v *Visit) Keys() Keys { return v.keys }

// Open lets the client in; call it after the client got its key.
func (v *Visit) Open() error {
	if err := v.link.send(fromStarter{Open: true}); err != nil {
		return fmt.Errorf("let the ssh client in: %w", err)
	}
	return nil
}

// Done is closed when the connection and all its sessions have ended.
func (v *Visit) Done() <-chan struct{} { return v.done }

// Close ends the connection. It is safe to call more than once.
func (v *Visit) Close() {
	_ = v.command.Process.Kill()
	<-v.done
}

// serve handles the server's requests until it is gone.
func (v *Visit) serve(ctx context.Context) {
	s := &sessions{visit: v, running: map[int64]Process{}}
	for {
		var m fromErrand
		if err := v.link.receive(&m); err != nil {
			if ctx.Err() == nil && !errors.Is(err, io.EOF) {
				v.options.Log.Warn("A message of the ssh server cannot be used", "error", err)
			}
			_ = v.command.Process.Kill()
			return
		}
		switch {
		case m.Request != nil:
			files := v.link.files.Take(m.Request.files())
			rescue.Go(func() { s.run(ctx, m.ID, *m.Request, files) })
		case m.Signal > 0:
			rescue.Go(func() { s.signal(ctx, m.ID, syscall.Signal(m.Signal)) })
		}
	}
}

// sessions are the processes of one visit.
type sessions struct {
	visit *Visit

	mu      sync.Mutex
	count   int
	running map[int64]Process
}

func (s *sessions) run(ctx context.Context, id int64, r Request, files []*os.File) {
	defer closeAll(files)
	p, welcome, err := s.begin(ctx, id, r, files)
	// The process's end shows to the holder of the other ends.
	closeAll(files)
	if err != nil {
		_ = s.visit.link.send(fromStarter{ID: id, Failed: err.Error()})
		return
	}
	_ = s.visit.link.send(fromStarter{ID: id, Started: &started{welcome}})
	status, err := p.Wait(ctx)
	s.mu.Lock()
	delete(s.running, id)
	s.count--
	s.mu.Unlock()
	if err == nil {
		_ = s.visit.link.send(fromStarter{ID: id, Ended: &ended{int(status)}})
	}
}

func (s *sessions) begin(ctx context.Context, id int64, r Request, files []*os.File) (p Process, welcome string, err error) {
	if err := r.check(); err != nil {
		return nil, "", err
	}
	if len(files) != r.files() {
		return nil, "", errors.New("the request came with a wrong number of open files")
	}
	s.mu.Lock()
	if s.count >= maxSessions {
		s.mu.Unlock()
		return nil, "", fmt.Errorf("this connection already has %d sessions, the most that are allowed", maxSessions)
	}
	s.count++
	s.mu.Unlock()
	give := payload.ExecFiles{}
	if r.Terminal != nil {
		give.Channel = files[0]
	} else {
		give.Stdio = [3]*os.File(files)
	}
	p, welcome, err = s.visit.options.Run(ctx, r, give)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.count--
		return nil, "", err
	}
	s.running[id] = p
	return p, welcome, nil
}

func (s *sessions) signal(ctx context.Context, id int64, sig syscall.Signal) {
	s.mu.Lock()
	p := s.running[id]
	s.mu.Unlock()
	if p == nil {
		return
	}
	if err := p.Signal(ctx, sig); err != nil {
		s.visit.options.Log.Debug("a signal for a session did not reach it", "error", err)
	}
}
