package cedar

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"podstarter/classads"
	"podstarter/rescue"
)

// Timeouts and limits of a Server whose fields leave them open.
const (
	// handshakeDeadline is SEC_TCP_SESSION_DEADLINE.
	handshakeDeadline = 120 * time.Second
	// payloadTimeout is STANDARD_COMMAND_PAYLOAD_TIMEOUT.
	payloadTimeout = 300 * time.Second
	// handlerTimeout is what DaemonCore sets on the socket of a handler.
	handlerTimeout = 20 * time.Second
	// maxHandshakes is how many peers may be between connecting and having
	// proved to be somebody, or having had their command served if it takes no session. HTCondor has no such limit.
	maxHandshakes = 64
	// maxFirstBytes bounds the first packet of a peer that has not proved anything
	// before. HTCondor's have 4 KiB.
	maxFirstBytes = 256 << 10
)

// unauthenticated is the user of a connection without a session
// (condor_includes/condor_daemon_core.h: UNAUTHENTICATED_FQU).
const unauthenticated = "unauthenticated@unmapped"

// Handler serves a command. The context ends when the server does; I/O on the
// stream is interrupted then. The connection is closed when the handler
// returns, after an error too, unless it was kept.
type Handler func(ctx context.Context, c *Call) error

// Call is one command that a peer sent and was allowed to send.
type Call struct {
	// Stream is ready for the payload to be taken. It may be in the middle of
	// a message if the command came without a session.
	Stream      *Stream
	Command     int
	User        string   // who sent it, user@domain
	PeerVersion string   // $CondorVersion$ string of the sender; empty if it did not say
	Session     *Session // nil if the command came without one
	kept        bool
}

// Keep makes the stream the handler's own: the server neither closes it nor
// interrupts it after the handler has returned.
func (c *Call) Keep() *Stream {
	c.kept = true
	return c.Stream
}

// Server accepts connections and serves the commands that come on them, one
// each (condor_daemon_core.V6/daemon_command.cpp). A peer that asks for a
// command that nobody handles, or that it may not use, or that does not hold
// a session, sees the connection closed and nothing else.
//
// The fields are set before the first call of Serve and not changed.
type Server struct {
	Sessions *Sessions    // of the peers that may send commands
	Version  string       // own $CondorVersion$ string
	Log      *slog.Logger // nil: none

	HandshakeDeadline time.Duration // for all of a handshake; 120 s if zero
	PayloadTimeout    time.Duration // for the first byte of the payload; 300 s if zero
	HandlerTimeout    time.Duration // for each wait of a handler; 20 s if zero
	Slow              Multiplier    // of these times
	MaxHandshakes     int           // at once; the oldest one gives way; 64 if zero

	mu       sync.RWMutex
	handlers map[int]registration
	pending  handshakes
	instance instance
}

type registration struct {
	level Level
	serve Handler
	// unproved says that a session's name, which anybody on the way may have read, is
	// enough: it does nothing but answer, or has its own proof of the key.
	unproved bool
}

// Handle registers the handler of a command and the level that its sender
// must hold. A sender with a session has proved to have its key before the handler
// is called: a message has come that was made with it. Commands of level Allow are also taken from peers without a
// session. A later registration replaces an earlier one, and the handlers
// that a Server has of itself.
func (s *Server) Handle(cmd int, level Level, h Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handlers == nil {
		s.handlers = map[int]registration{}
	}
	s.handlers[cmd] = registration{level: level, serve: h, unproved: level == Allow}
}

// HandleSpeaking is Handle for a command in which the server has the first word, so
// that its sender has proved nothing yet when the handler is called: it must read
// something before it does anything.
func (s *Server) HandleSpeaking(cmd int, level Level, h Handler) {
	s.Handle(cmd, level, h)
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.handlers[cmd]
	r.unproved = true
	s.handlers[cmd] = r
}

func (s *Server) lookup(cmd int) (registration, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if r, found := s.handlers[cmd]; found {
		return r, true
	}
	return s.builtin(cmd)
}

// Serve accepts connections from l until ctx ends or l fails; then it closes
// l, interrupts the handlers and waits for them. It returns nil if ctx ended.
// It may be called for several listeners at once.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	var running rescue.Group
	defer running.Wait()
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	for {
		conn, err := l.Accept()
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			if retryAccept(err, ctx.Done()) {
				continue
			}
			_ = l.Close()
			return fmt.Errorf("serve commands: %w", err)
		}
		running.Go(func() { s.serve(ctx, conn) })
	}
}

func (s *Server) log() *slog.Logger {
	if s.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return s.Log
}

// serve does all of one connection.
func (s *Server) serve(ctx context.Context, conn net.Conn) {
	st := NewStream(prepare(conn))
	st.SetMultiplier(s.Slow)
	kept := false
	defer func() {
		if !kept {
			_ = conn.Close()
		}
	}()
	call, handler, err := s.accept(ctx, st)
	if err != nil {
		// Anybody can make these happen, as often as they like.
		s.log().Debug("refused a command connection", "peer", st.Peer(), "error", err)
		return
	}
	kept, err = s.run(ctx, call, handler)
	if err != nil {
		s.log().Warn("command failed", "command", call.Command, "peer", st.Peer(), "user", call.User, "error", err)
	}
}

func (s *Server) run(ctx context.Context, call *Call, h Handler) (kept bool, err error) {
	st := call.Stream
	st.SetTimeout(orDefault(s.HandlerTimeout, handlerTimeout))
	st.setFirstRead(s.Slow.Of(orDefault(s.PayloadTimeout, payloadTimeout)))
	defer st.Cancel(ctx)()
	if call.Session == nil { // who it is, is not known when the command has been served either
		defer s.stranger(st.conn)()
	}
	s.log().Debug("command", "command", call.Command, "peer", st.Peer(), "user", call.User)
	err = h(ctx, call)
	if call.kept {
		return true, err
	}
	if err == nil && st.Pending() {
		err = st.EndMessage()
	}
	if err == nil {
		err = st.Flush()
	}
	return false, err
}

// stranger counts a connection among those whose peers have not proved anything, until the function it returns is called.
func (s *Server) stranger(c net.Conn) (known func()) {
	limit := s.MaxHandshakes
	if limit <= 0 {
		limit = maxHandshakes
	}
	return s.pending.enter(c, limit)
}

func orDefault(d, def time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return def
}

// accept does the handshake of a connection.
func (s *Server) accept(ctx context.Context, st *Stream) (*Call, Handler, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Slow.Of(orDefault(s.HandshakeDeadline, handshakeDeadline)))
	defer cancel()
	defer st.Cancel(ctx)()
	defer s.stranger(st.conn)()

	st.SetMessageLimit(maxAuthBytes)
	cmd, err := st.GetInt32()
	if err != nil {
		return nil, nil, err
	}
	if cmd == DCAuthenticate {
		call, h, err := s.resume(st)
		if err == nil {
			st.SetMessageLimit(0)
		}
		return call, h, err
	}
	r, found := s.lookup(cmd)
	if !found {
		return nil, nil, fmt.Errorf("command %d: %w", cmd, errUnknownCommand)
	}
	if r.level != Allow {
		return nil, nil, fmt.Errorf("command %d without a session: %w", cmd, errDenied)
	}
	return &Call{Stream: st, Command: cmd, User: unauthenticated}, r.serve, nil
}

var (
	errUnknownCommand = errors.New("nobody handles it")
	errDenied         = errors.New("the peer is not authorised")
)

// resume does the server's part of a resumed session (condor_daemon_core.V6/
// daemon_command.cpp:DaemonCommandProtocol::ReadCommand and following).
func (s *Server) resume(st *Stream) (*Call, Handler, error) {
	ad, err := st.getLiterals()
	if err != nil {
		return nil, nil, err
	}
	if err := st.EndOfMessage(); err != nil {
		return nil, nil, err
	}
	number, _ := ad.integer("Command")
	cmd := int(number)
	asked := cmd
	if cmd == DCSecQuery {
		auth, _ := ad.integer("AuthCommand")
		asked = int(auth)
	}
	r, found := s.lookup(asked)
	if !found {
		return nil, nil, fmt.Errorf("command %d: %w", asked, errUnknownCommand)
	}
	if use := ad.str("UseSession"); use != "YES" {
		return nil, nil, fmt.Errorf("command %d: the peer wants a new session, and only existing ones are served", cmd)
	}
	answer := ad.boolean("ResumeResponse")
	id := ad.str("Sid")
	session, found := s.session(id)
	if !found {
		err := fmt.Errorf("command %d: no session %.200q", cmd, id)
		if answer {
			err = errors.Join(err, st.answer(`ReturnCode = "SID_NOT_FOUND"`))
		}
		return nil, nil, err
	}
	if m := ad.str("CryptoMethods"); m != "" && !listsAES(m) {
		return nil, nil, fmt.Errorf("command %d in %s: %w, only %.80q", cmd, session, ErrNotAES, m)
	}
	if answer {
		nonce, err := newNonce()
		if err != nil {
			return nil, nil, fmt.Errorf("make a nonce: %w", err)
		}
		if err := st.answer(`ReturnCode = "AUTHORIZED"`, "RemoteVersion = "+classads.QuoteOld(s.Version), "Nonce = "+classads.QuoteOld(nonce)); err != nil {
			return nil, nil, err
		}
	}
	if err := st.setKey(session.key.bytes()); err != nil {
		return nil, nil, err
	}
	st.user, st.peerVersion = session.User, ad.str("RemoteVersion")
	if st.peerVersion == "" {
		st.peerVersion = session.PeerVersion
	}
	st.AllowEmptyMessage()
	call := &Call{Stream: st, Command: cmd, User: session.User, PeerVersion: st.peerVersion, Session: session}
	allowed := session.Levels.Has(r.level)
	if cmd == DCSecQuery {
		return call, secQuery(allowed), nil
	}
	if !allowed {
		s.log().Warn("denied a command", "command", cmd, "peer", st.Peer(), "user", session.User, "level", r.level.String())
		return nil, nil, fmt.Errorf("command %d in %s, level %s: %w", cmd, session, r.level, errDenied)
	}
	if !r.unproved {
		st.SetMessageLimit(maxFirstBytes)
		if err := st.prove(); err != nil {
			return nil, nil, fmt.Errorf("command %d in %s: the peer has not proved that it has the key: %w", cmd, session, err)
		}
	}
	return call, r.serve, nil
}

func (s *Server) session(id string) (*Session, bool) {
	if s.Sessions == nil {
		return nil, false
	}
	return s.Sessions.Lookup(id)
}

// answer sends an ad of the handshake.
func (s *Stream) answer(lines ...string) error {
	s.putLiterals(lines)
	return s.EndMessage()
}

// setFirstRead gives the next read a timeout of its own.
func (s *Stream) setFirstRead(d time.Duration) {
	s.deadline.mu.Lock()
	defer s.deadline.mu.Unlock()
	s.deadline.first = d
}

// handshakes keeps the connections whose peers have not proved anything yet,
// oldest first. One that is slow on purpose must not keep others out, so it
// is the oldest that goes when there are too many: an honest handshake is a
// matter of milliseconds.
type handshakes struct {
	mu   sync.Mutex
	list list.List
}

// enter adds a connection; the function it returns removes it.
func (h *handshakes) enter(c net.Conn, limit int) func() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.list.Len() >= limit {
		oldest := h.list.Front()
		h.list.Remove(oldest)
		_ = oldest.Value.(net.Conn).Close()
	}
	e := h.list.PushBack(c)
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.list.Remove(e)
	}
}
