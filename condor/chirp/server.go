package chirp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"podstarter/classads"
	"podstarter/condor/shadow"
	"podstarter/rescue"
)

// Shadow carries out what the job asks for; *shadow.Client implements it.
type Shadow interface {
	File(ctx context.Context, r shadow.FileRequest) (shadow.FileAnswer, error)
	GetJobAttr(ctx context.Context, attr string) (string, error)
	SetJobAttr(ctx context.Context, attr, expr string) error
	LogGeneric(ctx context.Context, text string) error
}

// Options say what a server serves.
type Options struct {
	Shadow Shadow
	Cookie string // what a client must say first; see [NewCookie]
	// Files, Updates and Delayed turn on the three kinds of requests: on files of
	// the submit side, on attributes and the event log, and on attributes that
	// wait for the next update.
	Files, Updates, Delayed bool
	Attributes              *Delayed // where delayed attributes go
	// JobAttribute looks up an attribute in the starter's own copy of the job's
	// ad. The job gets the result.
	JobAttribute func(name string) (*classads.Expr, bool)
	// Spool makes a file for one large request or answer. It is closed after use,
	// and should have no name.
	Spool func() (*os.File, error)
	// UID is the job's user. If there are too many connections, those of other
	// users are closed first; 0 treats all alike.
	UID int
	Log *slog.Logger // nil for none

	patience time.Duration // strangerTime, except in tests
}

// Bounds on connections.
const (
	maxStrangers = 64 // connections without the cookie; the next one closes an old one
	maxClients   = 512
	// strangerTime is how long a client may take to send the cookie.
	strangerTime = 30 * time.Second
	// wrongCookieTime is the delay of the answer to a wrong cookie
	// (io_proxy_handler.cpp:handle_cookie_request).
	wrongCookieTime = time.Second
	maxGuesses      = 3
)

const cookieLength = 31

// NewCookie makes a secret as the stock starter does: 31 lower-case letters
// (io_proxy.cpp:cookie_create).
func NewCookie() string {
	const letters = "abcdefghijklmnopqrstuvwxyz"
	cookie := make([]byte, 0, cookieLength)
	b := make([]byte, 1)
	for len(cookie) < cookieLength {
		_, _ = rand.Read(b) // never fails
		if int(b[0]) < 256/len(letters)*len(letters) {
			cookie = append(cookie, letters[int(b[0])%len(letters)])
		}
	}
	return string(cookie)
}

// Server serves the clients of one job.
type Server struct {
	o        Options
	log      *slog.Logger
	listener net.Listener
	ctx      context.Context
	cancel   context.CancelFunc
	turn     chan struct{} // full while a request is carried out

	sessions rescue.Group
	clients  chan struct{}
	complain complaints

	mu       sync.Mutex
	strange  []*stranger       // oldest first
	conns    map[net.Conn]bool // true after the cookie was sent
	finished bool
	opened   map[int64]shadow.Origin // files of the shadow that clients have opened
}

// Serve begins to serve the connections to l, and owns l from now on.
func Serve(l net.Listener, o Options) *Server {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.patience == 0 {
		o.patience = strangerTime
	}
	if o.JobAttribute == nil {
		o.JobAttribute = func(string) (*classads.Expr, bool) { return nil, false }
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{
		o: o, log: o.Log, listener: l, ctx: ctx, cancel: cancel,
		turn:     make(chan struct{}, 1),
		clients:  make(chan struct{}, maxClients),
		complain: complaints{log: o.Log},
		conns:    map[net.Conn]bool{}, opened: map[int64]shadow.Origin{},
	}
	s.sessions.Go(s.accept)
	return s
}

// Config returns the content of the file that tells clients the server's address,
// port and cookie.
func (s *Server) Config() string {
	host, port, err := net.SplitHostPort(s.listener.Addr().String())
	if err != nil {
		host, port = s.listener.Addr().String(), "0"
	}
	return fmt.Sprintf("%s %s %s\n", host, port, s.o.Cookie)
}

func (s *Server) accept() {
	for {
		conn, err := s.listener.Accept()
		if err == nil {
			if who := s.admit(conn); who != nil {
				s.sessions.Go(func() { s.serve(conn, who) })
			} else {
				conn.Close()
			}
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		// Out of file descriptors or memory: this may pass.
		s.log.Warn("The chirp proxy cannot accept a connection", "error", err)
		select {
		case <-time.After(100 * time.Millisecond):
		case <-s.ctx.Done():
			return
		}
	}
}

// admit registers a connection, unless the server is finishing.
func (s *Server) admit(conn net.Conn) *stranger {
	who := &stranger{conn: conn, gone: make(chan struct{}), own: s.isOwn(conn)}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.finished {
		return nil
	}
	s.conns[conn] = false
	if len(s.strange) >= maxStrangers {
		s.evict()
	}
	s.strange = append(s.strange, who)
	return who
}

// trust registers a connection as a client's.
func (s *Server) trust(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.finished {
		return false
	}
	s.conns[conn] = true
	return true
}

func (s *Server) drop(conn net.Conn) {
	conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, conn)
}

// Finish accepts no more connections and waits until the present clients have
// closed theirs, or ctx ends. Call it when the job's processes have ended: what
// they requested before is still carried out, even if nobody waits for it.
func (s *Server) Finish(ctx context.Context) {
	s.mu.Lock()
	s.finished = true
	for conn, client := range s.conns {
		if !client {
			conn.Close()
		}
	}
	s.mu.Unlock()
	s.listener.Close()
	done := make(chan struct{})
	rescue.Go(func() {
		s.sessions.Wait()
		close(done)
	})
	select {
	case <-done:
	case <-ctx.Done():
	}
	s.Close()
}

// Close ends the server and all connections. It does not wait for a call to the
// shadow that is under way.
func (s *Server) Close() {
	s.cancel()
	s.listener.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finished = true
	for conn := range s.conns {
		conn.Close()
	}
}
