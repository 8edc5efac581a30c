package sshtojob

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"

	"podstarter/payload"
)

// Bounds of the errand's requests, which come from an ssh client.
const (
	maxLine      = 1 << 20
	maxCommand   = 64 << 10
	maxVariable  = 8 << 10
	maxVariables = 64
	maxSessions  = 32 // at a time, of one connection
	maxTerm      = 128
)

// Kinds of sessions.
const (
	KindShell   = "shell"   // a login shell
	KindCommand = "command" // a command line, by a shell if there is one
	KindSFTP    = "sftp"    // the server side of sftp
)

// Request asks for a process in the payload's container.
type Request struct {
	// Kind is one of the Kind constants.
	Kind string `json:"kind"`
	// Command line, for [KindCommand].
	Command []byte `json:"command,omitempty"`
	// Env holds the variables that the client sent, as NAME=value.
	Env [][]byte `json:"env,omitempty"`
	// Term is the kind of terminal, as in the variable TERM.
	Term string `json:"term,omitempty"`
	// Terminal is nil for pipes.
	Terminal *payload.Terminal `json:"terminal,omitempty"`
}

// Keys identify the server to the client and the client to the server.
type Keys struct {
	// Host is the server's public key as a line of a known_hosts file, without
	// the host.
	Host []byte `json:"host"`
	// Client is the client's private key, as the content of a file.
	Client []byte `json:"client"`
}

// fromStarter is one line from the starter to the errand.
type fromStarter struct {
	// ID is that of the request to which the line belongs.
	ID int64 `json:"id,omitempty"`
	// Make asks for keys; it is the first message.
	Make *KeyType `json:"make,omitempty"`
	// Open: the client has its key.
	Open bool `json:"open,omitempty"`
	// Started answers a request; Welcome is a text to show to the user first.
	Started *started `json:"started,omitempty"`
	// Failed answers a request with a sentence for the user.
	Failed string `json:"failed,omitempty"`
	// Ended follows Started.
	Ended *ended `json:"ended,omitempty"`
}

type started struct {
	Welcome string `json:"welcome,omitempty"`
}

type ended struct {
	WaitStatus int `json:"wait_status"`
}

// fromErrand is one line from the errand to the starter.
type fromErrand struct {
	// ID is above 0; the errand chooses it.
	ID int64 `json:"id,omitempty"`
	// Keys answer Make.
	Keys *Keys `json:"keys,omitempty"`
	// Request asks for a process. Its files come with the line: three ends of
	// pipes, or one end of a socket for the terminal.
	Request *Request `json:"request,omitempty"`
	// Signal is a signal for the process of an earlier request.
	Signal int `json:"signal,omitempty"`
}

// files returns how many open files a request comes with.
func (r *Request) files() int {
	if r.Terminal != nil {
		return 1
	}
	return 3
}

// check reports what is out of bounds.
func (r *Request) check() error {
	switch {
	case r.Kind != KindShell && r.Kind != KindCommand && r.Kind != KindSFTP:
		return fmt.Errorf("unknown kind of session %.40q", r.Kind)
	case len(r.Command) > maxCommand:
		return fmt.Errorf("the command has %d bytes, at most %d are allowed", len(r.Command), maxCommand)
	case bytes.IndexByte(r.Command, 0) >= 0:
		return errors.New("the command has a NUL byte")
	case len(r.Env) > maxVariables:
		return fmt.Errorf("%d variables, at most %d are allowed", len(r.Env), maxVariables)
	case len(r.Term) > maxTerm || !printable(r.Term):
		return errors.New("the kind of terminal is not a single word")
	}
	for _, v := range r.Env {
		if !validVariable(v) {
			return errors.New("a variable is not of the form NAME=value")
		}
	}
	return nil
}

// validVariable requires a name that every shell can hold; other names have been
// used to attack shells.
func validVariable(v []byte) bool {
	name, _, ok := bytes.Cut(v, []byte{'='})
	if !ok || len(name) == 0 || len(v) > maxVariable || bytes.IndexByte(v, 0) >= 0 {
		return false
	}
	for i, c := range name {
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// link is either end of the socket between starter and errand.
type link struct {
	conn  *net.UnixConn
	files *payload.FileReader
	lines *payload.LineReader

	writing sync.Mutex
}

func newLink(f *os.File) (*link, error) {
	conn, err := net.FileConn(f)
	f.Close()
	if err != nil {
		return nil, fmt.Errorf("open the socket between starter and ssh server: %w", err)
	}
	sock, ok := conn.(*net.UnixConn)
	if !ok {
		conn.Close()
		return nil, errors.New("open the socket between starter and ssh server: the descriptor is not a Unix socket")
	}
	files := payload.NewFileReader(sock, 4*payload.MaxExecFiles)
	return &link{conn: sock, files: files, lines: payload.NewLineReader(files, maxLine)}, nil
}

func (l *link) send(v any, files ...*os.File) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	return payload.SendFiles(l.conn, append(line, '\n'), files)
}

func (l *link) receive(v any) error {
	line, err := l.lines.Next()
	if err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

func (l *link) close() {
	l.conn.Close()
	l.files.Close()
}
