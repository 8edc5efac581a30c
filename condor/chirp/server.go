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

// Shadow is who does what the job asks for; *shadow.Client is one.
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
	// the submit side, on attributes and the event log, and on attributes that are
	// told with the next update.
	Files, Updates, Delayed bool
	Attributes              *Delayed // where delayed attributes go
	// JobAttribute looks up an attribute in the starter's own copy of the job's ad.
	// The job sees what it finds.
	JobAttribute func(name string) (*classads.Expr, bool)
	// Spool makes a file for one large request or answer. It is closed after use,
	// and should have no name.
	Spool func() (*os.File, error)
	// UID is the job's user. What others have connected gives way first when there
	// are too many; 0 makes no difference between them.
	UID int
	Log *slog.Logger // nil for none

	patience time.Duration // strangerTime, but in tests
}

// Bounds on connections.
const (
	maxStrangers = 64 // that have not said the cookie yet; one gives way to the next
	maxClients   = 512
	// strangerTime is how long one may take to say the cookie.
	strangerTime = 30 * time.Second
	// wrongCookieTime is how long one that is wrong is not answered
	// (io_proxy_handler.cpp:handle_cookie_request).
	wrongCookieTime = time.Second
	maxGuesses      = 3
)

const cookieLength = 31

// NewCookie makes a secret word as the stock starter does, of 31 small letters
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
	turn     chan struct{} // holds a token while a request is carried out

	sessions rescue.Group
	clients  chan struct{}
	complain complaints

	mu       sync.Mutex
	strange  []*stranger       // oldest first
	conns    map[net.Conn]bool // whether the cookie has been said
	finished bool
	opened   map[int64]shadow.Origin // files of the shadow that clients have opened
}

// Serve begins to serve what connects to l, which is the server's from now on.
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

// Config is the content of the file by which clients find the server: address,
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
		// Out of file descriptors or memory: that may pass.
		s.log.Warn("The chirp proxy cannot take a connection", "error", err)
		select {
		case <-time.After(100 * time.Millisecond):
		case <-s.ctx.Done():
			return
		}
	}
}

// admit takes note of a connection, unless none is wanted any more.
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

// trust takes note that a connection is a client's.
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

// Finish takes no more connections and waits until the clients that there are
// have ended theirs, or ctx ends. It is for the time when the job's processes have
// ended: what they asked for before is still done, even if nobody waits for it.
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

// Close ends the server and all connections. A call of the shadow's that is under
// way is not waited for.
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
