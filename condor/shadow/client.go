// Package shadow makes the remote calls of a starter on its socket to the
// shadow, the agent of one job on the submit side.
//
// A call is one message there and one back, one at a time
// (condor_starter.V6.1/NTsenders.cpp, condor_shadow.V6.1/NTreceivers.cpp). A
// shadow does not answer a call that it does not know, so newer calls are made
// only if the shadow's version has them; see [Client.SetVersion].
//
// There are two kinds of errors. A [*CallError] is a refusal by the shadow; the
// connection is fine. [ErrLost] is in the error chain if the connection has
// become useless: from then on every call fails at once, and [Client.Lost] is
// closed. The job may go on until its lease, counted from [Client.LastCall],
// has run out.
//
// A shadow that comes back, or its successor, brings a new connection, and
// [Client.Resume] replaces the old one with it. The Client never repeats a call
// on another connection: if the answer was lost, the shadow may have carried
// out the call, and only the caller knows what may be repeated.
package shadow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"podstarter/condor/daemonlog"
	"podstarter/condor/version"
	"podstarter/internal/cedar"
	"podstarter/rescue"
)

// DefaultTimeout is how long the shadow may take to answer. It may be slow: a
// call can wait for its queue (STARTER_UPLOAD_TIMEOUT).
const DefaultTimeout = 300 * time.Second

var (
	// ErrLost is in the error chain of a call on a connection that is gone.
	ErrLost = errors.New("the connection to the shadow is lost")
	// ErrUnsupported is in the error chain of a call for which this shadow is
	// too old; nothing was sent.
	ErrUnsupported = errors.New("the shadow is too old for this call")
	// ErrNotEncrypted is in the error chain of a call with a secret answer on a
	// connection that is not encrypted; nothing was sent.
	ErrNotEncrypted = errors.New("the connection to the shadow is not encrypted")
)

// CallError is a shadow's refusal of a call.
type CallError struct {
	Call   string        // name of the call
	Result int           // negative
	Errno  syscall.Errno // why; 0 if this call gives no reason
}

func (e *CallError) Error() string {
	if e.Errno == 0 {
		return fmt.Sprintf("shadow call %s: the shadow answers %d", e.Call, e.Result)
	}
	return fmt.Sprintf("shadow call %s: the shadow refuses: %v", e.Call, e.Errno)
}

// Unwrap returns the errno.
func (e *CallError) Unwrap() error {
	if e.Errno == 0 {
		return nil
	}
	return e.Errno
}

// Client makes the calls. It is safe for concurrent use; calls wait for each
// other.
type Client struct {
	log     *slog.Logger
	turn    chan struct{} // holds one token; its owner may use the link's stream
	version atomic.Pointer[version.Version]
	last    atomic.Pointer[time.Time] // begin of the last exchange that was answered

	mu      sync.Mutex // guards what follows; held only for a moment
	link    *link      // changed only by the owner of the turn
	timeout time.Duration
	over    error         // why no other connection is accepted; nil while one would be
	moved   chan struct{} // closed when link or over has changed
}

// New makes a client of an adopted stream and begins to watch the socket for
// its end. The client owns the stream from then on.
func New(s *cedar.Stream, log *slog.Logger) *Client {
	c := &Client{
		log:     log.With(daemonlog.In(daemonlog.Syscalls)),
		turn:    make(chan struct{}, 1),
		timeout: DefaultTimeout,
		moved:   make(chan struct{}),
	}
	c.version.Store(&version.Version{})
	c.turn <- struct{}{}
	c.stamp(time.Now())
	c.link = newLink(c, s)
	return c
}

// SetTimeout sets the time limit for each answer of the shadow.
func (c *Client) SetTimeout(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timeout = d
	c.link.stream.SetTimeout(d)
}

// SetVersion sets the shadow's version, from ShadowVersion of the job's ad
// (CondorVersion there is the submitter's). Before that, and with the zero
// version, the client makes only calls that every shadow has.
func (c *Client) SetVersion(v version.Version) { c.version.Store(&v) }

// Version returns the version given to SetVersion.
func (c *Client) Version() version.Version { return *c.version.Load() }

// LastCall returns the beginning of the last exchange that the shadow has
// answered; the job's lease counts from it. HTCondor counts from the end of the
// exchange. The shadow's own count starts between the two, and the starter's
// must not end after it.
func (c *Client) LastCall() time.Time { return *c.last.Load() }

// Encrypted reports whether the connection is encrypted. If the claim has no
// key, the shadow cannot come back either.
func (c *Client) Encrypted() bool { return c.current().stream.Encrypted() }

// Close closes the connection; no other one is accepted.
func (c *Client) Close() error {
	l := c.end(errClosed)
	l.expected.Store(true)
	err := l.stream.Close() // first, so that a call under way does not hold up the watch
	l.watch.stop()
	return err
}

var errClosed = errors.New("it was closed")

func (c *Client) stamp(t time.Time) { c.last.Store(&t) }

func (c *Client) current() *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link
}

// call is one request and how to read its reply.
type call struct {
	name   string
	number int64
	put    func(s *cedar.Stream) // the fields of the request; may be nil
	// noErrno: a negative result is not followed by a reason, and the fields
	// come with any result.
	noErrno bool
	// bare: the reply has no result, only fields.
	bare bool
	// whole: the function that takes the fields reads the reply to its end.
	whole bool
	// noReply: the shadow does not answer.
	noReply bool
	// last: the shadow hangs up after this call.
	last bool
	// on is the connection to which the call belongs; nil for any.
	on *link
}

// answer is the result of a call.
type answer[T any] struct {
	value  T
	result int64
	err    error
	on     *link // the connection that it came on
}

// none takes no fields from a reply.
func none(*cedar.Stream, int64) (struct{}, error) { return struct{}{}, nil }

// tell makes a call whose reply has no fields, and returns its result.
func (c *Client) tell(ctx context.Context, call call) (int64, error) {
	a := ask(ctx, c, call, none)
	return a.result, a.err
}

// ask makes a call. If the result is not negative, get takes the fields of the
// reply.
//
// If ctx ends before the shadow has answered, ask returns ctx's cause at once;
// the answer is still awaited and dropped, so the connection survives. Only a
// request that cannot be written completely breaks it.
func ask[T any](ctx context.Context, c *Client, call call, get func(*cedar.Stream, int64) (T, error)) answer[T] {
	select {
	case <-c.turn:
	case <-ctx.Done():
		return answer[T]{err: fmt.Errorf("shadow call %s: %w", call.name, context.Cause(ctx))}
	}
	refuse := func(err error) answer[T] {
		c.turn <- struct{}{}
		return answer[T]{err: fmt.Errorf("shadow call %s: %w", call.name, err)}
	}
	l := c.current()
	switch {
	case call.on != nil && call.on != l:
		return refuse(fmt.Errorf("%w: %w", ErrLost, errElsewhere))
	case l.broken != nil:
		return refuse(l.broken)
	}
	if err := context.Cause(ctx); err != nil {
		return refuse(err)
	}
	c.log.Info("Doing CONDOR_" + call.name)
	begin := time.Now()
	if err := request(ctx, l.stream, call); err != nil {
		return refuse(l.breakUp(err))
	}
	done := make(chan answer[T], 1)
	rescue.Go(func() {
		defer func() { c.turn <- struct{}{} }()
		var a answer[T]
		if err := rescue.Do(func() error { a = reply(l.stream, call, get); return nil }); err != nil {
			a.err = err // and an unknown part of the answer is unread
		}
		a.on, a.err = l, c.settle(l, call, begin, a.err)
		done <- a
	})
	select {
	case a := <-done:
		return a
	case <-ctx.Done():
		return answer[T]{err: fmt.Errorf("shadow call %s: waiting for the answer: %w", call.name, context.Cause(ctx))}
	}
}

var errElsewhere = errors.New("the call belongs to an earlier connection")

func request(ctx context.Context, s *cedar.Stream, call call) error {
	defer s.Cancel(ctx)()
	s.PutInt(call.number)
	if call.put != nil {
		call.put(s)
	}
	return s.EndMessage()
}

func reply[T any](s *cedar.Stream, call call, get func(*cedar.Stream, int64) (T, error)) (a answer[T]) {
	if call.noReply {
		return a
	}
	if !call.bare {
		if a.result, a.err = s.GetInt(); a.err != nil {
			return a
		}
	}
	if a.result < 0 && !call.noErrno {
		errno, err := s.GetErrno()
		if err == nil {
			err = s.EndOfMessage()
		}
		if err == nil {
			err = &CallError{Call: call.name, Result: int(a.result), Errno: errno}
		}
		a.err = err
		return a
	}
	var bad error
	if a.value, bad = get(s, a.result); bad != nil && !harmless(bad) {
		a.err = bad
		return a
	}
	if !call.whole {
		a.err = s.EndOfMessage()
	}
	if a.err == nil {
		a.err = bad
	}
	return a
}

// harmless reports whether the reply was read to its end in spite of the error.
func harmless(err error) bool {
	var badAd *cedar.AdError
	var refusal *CallError
	return errors.As(err, &badAd) || errors.As(err, &refusal)
}

// settle records what an exchange means for the connection; the caller has the
// turn.
func (c *Client) settle(l *link, call call, begin time.Time, err error) error {
	if err != nil && !harmless(err) {
		// Half a message may be on its way in either direction.
		return fmt.Errorf("shadow call %s: %w", call.name, l.breakUp(err))
	}
	if !call.noReply {
		// The shadow may never have received a message without an answer.
		c.stamp(begin)
	}
	if call.last {
		l.expected.Store(true)
		c.end(errLast)
	}
	var refusal *CallError
	if err != nil && !errors.As(err, &refusal) {
		err = fmt.Errorf("shadow call %s: answer: %w", call.name, err)
	}
	if err != nil {
		c.log.Info(err.Error())
	}
	return err
}

var errLast = errors.New("the last call was made")

// since returns why the shadow's version does not allow a call, or nil.
func (c *Client) since(name string, major, minor, patch int) error {
	v := c.Version()
	if v.AtLeast(major, minor, patch) {
		return nil
	}
	return fmt.Errorf("shadow call %s: %w: it is %s, the call needs %d.%d.%d", name, ErrUnsupported, v, major, minor, patch)
}
