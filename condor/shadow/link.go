package shadow

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"podstarter/internal/cedar"
)

// link is one connection to a shadow. A client has one at a time, at first the
// one that the startd handed down.
type link struct {
	stream   *cedar.Stream
	watch    *watch
	lost     chan struct{} // closed when the connection broke, unless that was expected
	broken   error         // what broke the connection; under the turn
	expected atomic.Bool   // the end of the connection no longer matters
}

// newLink begins to use a stream; the caller holds mu, or is the only user.
func newLink(c *Client, s *cedar.Stream) *link {
	s.SetTimeout(c.timeout)
	l := &link{stream: s, lost: make(chan struct{}), watch: newWatch(c, s.Conn())}
	l.watch.start(c, l)
	return l
}

// breakUp records that the connection is useless; the caller has the turn.
func (l *link) breakUp(cause error) error {
	if l.broken == nil {
		l.broken = fmt.Errorf("%w: %w", ErrLost, cause)
		l.stream.Close()
		l.watch.leave()
		if !l.expected.Load() {
			close(l.lost)
		}
	}
	return l.broken
}

// isLost reports whether the connection has broken unexpectedly.
func (l *link) isLost() bool {
	select {
	case <-l.lost:
		return true
	default:
		return false
	}
}

// Lost is closed when the present connection is lost, during a call or while
// idle; the next connection has another channel. It is not closed if a shadow
// hangs up after JobExit or after a critical ReportError, as it should.
func (c *Client) Lost() <-chan struct{} { return c.current().lost }

// Broken reports whether the present connection is lost already.
func (c *Client) Broken() bool { return c.current().isLost() }

// Await returns when there is a connection, perhaps at once. The error is ctx's
// cause, or has [ErrLost] in its chain if no other will be accepted.
func (c *Client) Await(ctx context.Context) error {
	return c.await(ctx, func(l *link) bool { return !l.isLost() })
}

// AwaitNext is Await for a connection that came after the one with this channel of
// [Client.Lost]. The next one may be lost by now, too.
func (c *Client) AwaitNext(ctx context.Context, lost <-chan struct{}) error {
	return c.await(ctx, func(l *link) bool { return l.lost != lost })
}

func (c *Client) await(ctx context.Context, found func(*link) bool) error {
	for {
		c.mu.Lock()
		l, over, moved := c.link, c.over, c.moved
		c.mu.Unlock()
		switch {
		case over != nil:
			return fmt.Errorf("%w, and no other is accepted: %w", ErrLost, over)
		case found(l):
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("waiting for the shadow to come back: %w", context.Cause(ctx))
		}
	}
}

// Disconnect breaks the connection, so that the shadow comes back with a new
// one: this makes both sides restart a failed transfer.
func (c *Client) Disconnect(cause error) {
	l := c.current()
	l.stream.Close() // a call under way ends and returns the turn
	<-c.turn
	_ = l.breakUp(cause)
	c.turn <- struct{}{}
}

// Abandon stops waiting for a shadow: none is accepted any more, and
// [Client.Await] fails. If there is a connection, it only returns false: a
// shadow that came back a moment before keeps the job.
func (c *Client) Abandon(reason error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over == nil && !c.link.isLost() {
		return false
	}
	c.finish(reason)
	return true
}

// end is Abandon even if there is a connection, and returns that.
func (c *Client) end(reason error) *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.finish(reason)
	return c.link
}

func (c *Client) finish(reason error) {
	if c.over == nil {
		c.over = reason
		c.changed()
	}
}

// changed wakes the goroutines that wait; the caller holds mu.
func (c *Client) changed() {
	close(c.moved)
	c.moved = make(chan struct{})
}

// Over returns why no shadow is accepted any more, nil while one is.
func (c *Client) Over() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

var errReplaced = errors.New("a shadow came back with another connection")

// Resume replaces the connection with that of a shadow that came back. The old
// one may not be known to be lost: the shadow often notices first. A call under
// way on the old one fails with [ErrLost].
//
// The first call asks for the shadow's sessions, as in the C++ starter
// (jic_shadow.cpp:JICShadow::reconnect); settle gets the answer, zero if this
// shadow has no sessions, before any other call is made and before
// [Client.Await] returns. The client owns the stream even after an error; an
// error leaves the client without a connection: the shadow will try again.
func (c *Client) Resume(ctx context.Context, s *cedar.Stream, settle func(SecSessionInfo) error) error {
	fail := func(err error) error {
		s.Close()
		return fmt.Errorf("taking the shadow's new connection: %w", err)
	}
	if err := c.Over(); err != nil {
		return fail(err)
	}
	old := c.current()
	old.stream.Close() // a call under way ends and returns the turn
	select {
	case <-c.turn:
	case <-ctx.Done():
		return fail(context.Cause(ctx))
	}
	defer func() { c.turn <- struct{}{} }()
	_ = c.current().breakUp(errReplaced)
	begin := time.Now()
	info, err := c.firstCall(ctx, s)
	if err == nil {
		err = settle(info)
	}
	if err != nil {
		return fail(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over != nil {
		return fail(c.over)
	}
	c.stamp(begin)
	c.link = newLink(c, s)
	c.changed()
	return nil
}

// firstCall asks for the sessions on a connection that is not in use yet.
func (c *Client) firstCall(ctx context.Context, s *cedar.Stream) (SecSessionInfo, error) {
	c.mu.Lock()
	s.SetTimeout(c.timeout)
	c.mu.Unlock()
	const name = "get_sec_session_info"
	if !s.Encrypted() {
		return SecSessionInfo{}, fmt.Errorf("shadow call %s: %w", name, ErrNotEncrypted)
	}
	defer s.Cancel(ctx)()
	call := sessionsCall(name)
	c.log.Info("Doing CONDOR_" + name)
	if err := request(ctx, s, call); err != nil {
		return SecSessionInfo{}, fmt.Errorf("shadow call %s: %w", name, err)
	}
	a := reply(s, call, takeSessions)
	if refusal := (*CallError)(nil); errors.As(a.err, &refusal) {
		return SecSessionInfo{}, nil
	}
	if a.err != nil {
		return SecSessionInfo{}, fmt.Errorf("shadow call %s: %w", name, a.err)
	}
	return a.value, nil
}
