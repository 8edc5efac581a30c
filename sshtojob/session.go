package sshtojob

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"podstarter/payload"
)

// room is one session channel: first its settings, then the process (RFC 4254,
// section 6).
type room struct {
	channel ssh.Channel
	server  ssh.Conn
	up      *starter
	env     [][]byte
	term    string
	modes   []byte

	mu      sync.Mutex
	size    *payload.Terminal // nil without a terminal
	master  *os.File          // set once a process runs on a terminal
	process *process
}

func session(server ssh.Conn, c ssh.NewChannel, up *starter) {
	channel, requests, err := c.Accept()
	if err != nil {
		return
	}
	r := &room{channel: channel, server: server, up: up}
	defer channel.Close()
	over := make(chan struct{})
	began := false
	for {
		select {
		case <-over:
			go ssh.DiscardRequests(requests)
			return
		case request, ok := <-requests:
			if !ok {
				r.left()
				if began {
					<-over
				}
				return
			}
			what, granted := r.asked(request, began)
			if request.WantReply {
				_ = request.Reply(granted, nil)
			}
			if what != nil {
				began = true
				go func() {
					defer close(over)
					r.live(*what)
				}()
			}
		}
	}
}

// asked handles one request; what is not nil if something must run.
func (r *room) asked(request *ssh.Request, began bool) (what *Request, granted bool) {
	switch request.Type {
	case "env":
		return nil, !began && r.setVariable(request.Payload)
	case "pty-req":
		return nil, !began && r.setTerminal(request.Payload)
	case "window-change":
		var size struct{ Columns, Rows, Width, Height uint32 }
		if ssh.Unmarshal(request.Payload, &size) == nil {
			r.resize(terminalSize(size.Rows, size.Columns))
		}
		return nil, true
	case "signal":
		var signal struct{ Name string }
		if ssh.Unmarshal(request.Payload, &signal) == nil {
			r.signal(unix.SignalNum("SIG" + signal.Name))
		}
		return nil, true
	}
	if began {
		return nil, false
	}
	what = &Request{Env: r.env, Term: r.term, Terminal: r.size}
	switch request.Type {
	case "shell":
		what.Kind = KindShell
		return what, true
	case "exec":
		var command struct{ Line string }
		if ssh.Unmarshal(request.Payload, &command) != nil || len(command.Line) > maxCommand {
			return nil, false
		}
		what.Kind, what.Command = KindCommand, []byte(command.Line)
		return what, true
	case "subsystem":
		var subsystem struct{ Name string }
		if ssh.Unmarshal(request.Payload, &subsystem) != nil || subsystem.Name != "sftp" {
			return nil, false
		}
		what.Kind, what.Term, what.Terminal = KindSFTP, "", nil
		return what, true
	}
	return nil, false
}

func (r *room) setVariable(data []byte) bool {
	var v struct{ Name, Value string }
	if ssh.Unmarshal(data, &v) != nil || len(r.env) == maxVariables {
		return false
	}
	entry := []byte(v.Name + "=" + v.Value)
	if !validVariable(entry) {
		return false
	}
	r.env = append(r.env, entry)
	return true
}

func (r *room) setTerminal(data []byte) bool {
	var t struct {
		Term                         string
		Columns, Rows, Width, Height uint32
		Modes                        string
	}
	if ssh.Unmarshal(data, &t) != nil || len(t.Term) > maxTerm || !printable(t.Term) {
		return false
	}
	size := terminalSize(t.Rows, t.Columns)
	r.term, r.size, r.modes = t.Term, &size, []byte(t.Modes)
	return true
}

func terminalSize(rows, columns uint32) payload.Terminal {
	const most = 1<<16 - 1
	return payload.Terminal{Rows: uint16(min(rows, most)), Columns: uint16(min(columns, most))}
}

func (r *room) resize(size payload.Terminal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.size == nil {
		return
	}
	*r.size = size
	if r.master != nil {
		setSize(r.master, size)
	}
}

func (r *room) signal(sig syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.process != nil && sig != 0 {
		r.process.signal(int(sig))
	}
}

// left handles the client's closing of the channel: a terminal hangs up; pipes
// break by themselves.
func (r *room) left() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.master != nil {
		r.master.Close()
	}
}

// live runs the process of the session to its end and sends its exit code.
func (r *room) live(what Request) {
	var status int
	var err error
	if what.Terminal != nil {
		status, err = r.onTerminal(what)
	} else {
		status, err = r.onPipes(what)
	}
	if err != nil {
		r.say(r.channel.Stderr(), "condor_ssh_to_job: "+err.Error()+"\n")
		r.exit(exitFailed)
		return
	}
	r.exit(exitCode(syscall.WaitStatus(status)))
}

// exitFailed is the exit code of a session that could not begin; ssh itself uses
// it for failures that are not the command's.
const exitFailed = 255

// exitCode converts a wait status as a shell does. Stock has a shell between sshd
// and the command, so its clients see the same.
func exitCode(status syscall.WaitStatus) uint32 {
	if status.Signaled() {
		return 128 + uint32(status.Signal())
	}
	return uint32(status.ExitStatus())
}

func (r *room) exit(code uint32) {
	_, _ = r.channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Code uint32 }{code}))
}

// say writes a text to the user, whose terminal, if any, is in raw mode.
func (r *room) say(to io.Writer, text string) {
	if r.size != nil {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	_, _ = io.WriteString(to, text)
}

// onPipes runs a process on three pipes.
func (r *room) onPipes(what Request) (int, error) {
	var theirs, ours [3]*os.File
	defer closeAll(theirs[:])
	defer closeAll(ours[:])
	for i := range theirs {
		read, write, err := os.Pipe()
		if err != nil {
			return 0, err
		}
		if theirs[i], ours[i] = write, read; i == 0 {
			theirs[i], ours[i] = read, write
		}
	}
	p, err := r.up.run(what, theirs[:])
	if err != nil {
		return 0, err
	}
	closeAll(theirs[:])
	r.use(p, nil)
	r.say(r.channel, p.welcome)
	go func() {
		_, _ = io.Copy(ours[0], r.channel)
		ours[0].Close()
	}()
	var output sync.WaitGroup
	output.Go(func() { _, _ = io.Copy(r.channel, ours[1]) })
	output.Go(func() { _, _ = io.Copy(r.channel.Stderr(), ours[2]) })
	output.Wait()
	return p.wait(context.Background())
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

func (r *room) use(p *process, master *os.File) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.process, r.master = p, master
	if master != nil {
		setSize(master, *r.size) // it may have changed since
	}
}

// onTerminal runs a process on a terminal of its container.
func (r *room) onTerminal(what Request) (int, error) {
	near, far, err := socketPair()
	if err != nil {
		return 0, err
	}
	defer near.Close()
	defer far.Close()
	p, err := r.up.run(what, []*os.File{far})
	if err != nil {
		return 0, err
	}
	far.Close()
	master, err := terminalOf(near)
	if err != nil {
		return 0, err
	}
	defer master.Close()
	applyModes(master, r.modes)
	r.use(p, master)
	r.say(r.channel, p.welcome)
	go func() { _, _ = io.Copy(master, r.channel) }()
	output := make(chan struct{})
	go func() {
		defer close(output)
		_, _ = io.Copy(r.channel, master) // until the last process has closed the terminal
	}()
	status, err := p.wait(context.Background())
	if err == nil {
		r.drain(master, output)
	}
	return status, err
}

// socketPair makes the socket over which the terminal is passed.
func socketPair() (*net.UnixConn, *os.File, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	near := os.NewFile(uintptr(pair[0]), "near")
	conn, err := net.FileConn(near)
	near.Close()
	far := os.NewFile(uintptr(pair[1]), "far")
	if err != nil {
		far.Close()
		return nil, nil, err
	}
	sock, ok := conn.(*net.UnixConn)
	if !ok {
		return nil, nil, errors.Join(errors.New("no socket"), conn.Close(), far.Close())
	}
	return sock, far, nil
}
