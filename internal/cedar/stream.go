package cedar

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Stream is one CEDAR connection (HTCondor calls it a ReliSock). Values are put
// into messages and taken out of them. Both sides must agree on where a message
// ends.
//
// A Stream is not safe for concurrent use, with one exception: as long as
// coalescing is off, one goroutine may put while another one gets. Cancel and
// Close may be called from anywhere.
type Stream struct {
	conn        net.Conn
	peer        string
	user        string
	peerVersion string

	send outgoing
	recv incoming

	key  func() []byte // of an encrypted stream, for Serialize; a function prints as nothing of interest
	bulk []byte        // pieces of files on their way

	// emptyOK is CEDAR's "allow one empty message": the next end of message
	// of either direction may come without any value (stream.h:
	// allow_one_empty_message).
	emptyOK atomic.Bool

	deadline   deadlines
	multiplier atomic.Int64
}

// NewStream makes a stream of a fresh connection: plaintext, no bytes sent or
// received, no timeout.
func NewStream(conn net.Conn) *Stream {
	s := &Stream{conn: conn}
	if a := conn.RemoteAddr(); a != nil && a.String() != "" {
		s.peer = "<" + a.String() + ">"
	}
	s.send.packet, s.send.files = DefaultPacketSize, fileChunk
	s.send.open = -1
	return s
}

// Conn returns the connection below the stream. The stream may already have read
// bytes from it; Detach returns both.
func (s *Stream) Conn() net.Conn { return s.conn }

// Peer returns the address of the peer in angle brackets, for logs.
func (s *Stream) Peer() string { return s.peer }

// PeerVersion returns the peer's $CondorVersion$ string, empty if unknown.
func (s *Stream) PeerVersion() string { return s.peerVersion }

// SetPeerVersion records the peer's version string.
func (s *Stream) SetPeerVersion(v string) { s.peerVersion = v }

// User returns the fully qualified name of the peer, from the session or from the
// process that handed the socket down; empty if the peer is unknown.
func (s *Stream) User() string { return s.user }

// Encrypted reports whether the stream has a key. A stream that has one
// encrypts every packet until it is closed (sock.cpp:mustEncrypt).
func (s *Stream) Encrypted() bool { return s.send.aead != nil }

// AllowEmptyMessage lets the next end of message, in whichever direction it
// happens, succeed without any value; nothing is sent or read for it. It is
// set after a command was started, since a command need not have a payload.
func (s *Stream) AllowEmptyMessage() { s.emptyOK.Store(true) }

// Close closes the connection. Values that were not flushed are lost.
func (s *Stream) Close() error { return s.conn.Close() }

// Detach ends the stream without closing the connection, for a handler that
// goes on with another protocol on it, such as ssh. The second result holds
// the bytes after the peer's last message that the stream has already read.
func (s *Stream) Detach() (net.Conn, []byte) {
	rest := append([]byte(nil), s.recv.buf[s.recv.r:s.recv.w]...)
	s.recv.r, s.recv.w = 0, 0
	return s.conn, rest
}

// SetTimeout limits the time without progress of a read or a write; 0, the
// default, means no limit. The stream's [Multiplier] makes it longer.
func (s *Stream) SetTimeout(d time.Duration) { s.deadline.setTimeout(s.conn, s.Longer(d)) }

// Cancel makes the end of ctx interrupt the reads and writes of the stream; the
// interrupted call returns an error that wraps ctx's cause. Call the returned
// function to undo this. After an interruption in the middle of a message the
// stream cannot be used any more.
func (s *Stream) Cancel(ctx context.Context) func() {
	if ctx.Done() == nil {
		return func() {}
	}
	return s.deadline.watch(ctx, s.conn)
}

// deadlines sets the deadlines of a connection. To spare the runtime's timers, it
// does not set them for every packet: it sets a deadline a sixteenth later than
// needed, and moves it only when that slack is used up.
type deadlines struct {
	mu      sync.Mutex
	timeout time.Duration
	first   time.Duration // replaces timeout for the first read, then 0
	read    time.Time     // when the read deadline was last moved
	write   time.Time
	moment  bool       // the read deadline is of armMoment
	fired   []*watcher // contexts that have ended and are still watched
}

func (d *deadlines) setTimeout(c net.Conn, t time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timeout, d.first = t, 0
	d.read, d.write = time.Time{}, time.Time{}
	if t <= 0 && len(d.fired) == 0 {
		_ = c.SetDeadline(time.Time{})
	}
}

// watcher is one context that may interrupt the stream.
type watcher struct {
	over  bool  // the arrangement has ended
	fired bool  // the context has ended
	cause error // why
}

func (d *deadlines) watch(ctx context.Context, c net.Conn) func() {
	w := &watcher{}
	stop := context.AfterFunc(ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if w.over {
			return
		}
		w.fired, w.cause = true, context.Cause(ctx)
		d.fired = append(d.fired, w)
		_ = c.SetDeadline(time.Unix(1, 0))
	})
	return func() {
		stop()
		d.mu.Lock()
		defer d.mu.Unlock()
		w.over = true
		if !w.fired {
			return
		}
		d.fired = slices.DeleteFunc(d.fired, func(o *watcher) bool { return o == w })
		if len(d.fired) == 0 {
			d.read, d.write = time.Time{}, time.Time{}
			_ = c.SetDeadline(time.Time{})
		}
	}
}

// armRead prepares for one read, armWrite for one write.
func (d *deadlines) armRead(c net.Conn) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := d.timeout
	if d.first > 0 {
		t, d.first, d.read = d.first, 0, time.Time{}
		defer func() { d.read = time.Time{} }()
	}
	if d.moment && t <= 0 && len(d.fired) == 0 {
		d.moment = false
		return c.SetReadDeadline(time.Time{})
	}
	return d.arm(t, &d.read, c.SetReadDeadline)
}

func (d *deadlines) armWrite(c net.Conn) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.arm(d.timeout, &d.write, c.SetWriteDeadline)
}

// armMoment prepares for a read that is to end after t whatever comes, or with 0
// for one that does not wait.
func (d *deadlines) armMoment(c net.Conn, t time.Duration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.fired) > 0 {
		return d.fired[0].cause
	}
	d.read, d.moment = time.Time{}, t > 0
	if t <= 0 {
		return c.SetReadDeadline(time.Time{})
	}
	return c.SetReadDeadline(time.Now().Add(t))
}

func (d *deadlines) arm(t time.Duration, last *time.Time, set func(time.Time) error) error {
	if len(d.fired) > 0 {
		return d.fired[0].cause
	}
	if t <= 0 {
		return nil
	}
	now := time.Now()
	if !last.IsZero() && now.Sub(*last) < t/16 {
		return nil
	}
	*last = now
	return set(now.Add(t + t/16))
}

// cause replaces the error of an interrupted read or write by the reason for
// the interruption, if a context was it.
func (d *deadlines) cause(err error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.fired) > 0 {
		return d.fired[0].cause
	}
	return err
}

// struck reports whether a watched context has ended.
func (d *deadlines) struck() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.fired) > 0
}

// rearm makes the next read and write move their deadlines.
func (d *deadlines) rearm() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.read, d.write = time.Time{}, time.Time{}
}

func (d *deadlines) get() time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.timeout
}

// String names the peer.
func (s *Stream) String() string { return "connection to " + s.peer }

// Format keeps keys and buffered values out of every verb.
func (s *Stream) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue names the peer.
func (s *Stream) LogValue() slog.Value { return slog.StringValue(s.peer) }
