// Package shadow makes the remote calls of a starter on the socket that leads
// to the shadow, the submit side's agent of one job.
//
// A call is one message there and one back, one at a time
// (condor_starter.V6.1/NTsenders.cpp, condor_shadow.V6.1/NTreceivers.cpp). A
// shadow that does not know a call answers nothing at all, so calls that came
// late are made only if the shadow's version has them; see [Client.SetVersion].
//
// Two kinds of errors are told apart. A [*CallError] is a "no" of the shadow;
// the connection is fine. [ErrLost] is in the chain of everything after which
// the connection is of no use: from then on every call fails at once, and
// [Client.Lost] is closed. The job may go on until its lease, counted from
// [Client.LastCall], has run out.
//
// A shadow that comes back, or its successor, brings a new connection, which
// [Client.Resume] puts into the place of the old one. A call is made on one
// connection and never made again by the Client: whether the shadow has
// carried out one whose answer was lost is not known, and only the caller
// knows what may be said twice.
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

// DefaultTimeout is how long the shadow may take to answer. It may be slow:
// a call can wait for its queue (STARTER_UPLOAD_TIMEOUT).
const DefaultTimeout = 300 * time.Second

var (
	// ErrLost is in the chain of the error of a call on a connection that is
	// gone.
	ErrLost = errors.New("the connection to the shadow is lost")
	// ErrUnsupported is in the chain of the error of a call that this shadow
	// is too old for; nothing was sent.
	ErrUnsupported = errors.New("the shadow is too old for this call")
	// ErrNotEncrypted is in the chain of the error of a call whose answer is
	// secret, on a connection that is not encrypted; nothing was sent.
	ErrNotEncrypted = errors.New("the connection to the shadow is not encrypted")
)

// CallError is a shadow's refusal of a call.
type CallError struct {
	Call   string        // name of the call
	Result int           // negative
	Errno  syscall.Errno // why; 0 if this call has no reasons
}

func (e *CallError) Error() string {
	if e.Errno == 0 {
		return fmt.Sprintf("shadow call %s: the shadow answers %d", e.Call, e.Result)
	}
	return fmt.Sprintf("shadow call %s: the shadow refuses: %v", e.Call, e.Errno)
}

// Unwrap gives the errno.
func (e *CallError) Unwrap() error {
	if e.Errno == 0 {
		return nil
	}
	return e.Errno
}

// Client makes the calls. It may be used by several goroutines; calls wait for
// each other.
type Client struct {
	log     *slog.Logger
	turn    chan struct{} // holds one token; whoever has it may use the link's stream
	version atomic.Pointer[version.Version]
	last    atomic.Pointer[time.Time] // begin of the last exchange that was answered

	mu      sync.Mutex // guards what follows; held for no longer than it takes to look
	link    *link      // changed by who has the turn
	timeout time.Duration
	over    error         // why no other connection is taken; nil while one would be
	moved   chan struct{} // closed when link or over has changed
}

// New makes a client of an adopted stream and begins to watch the socket for
// its end. The stream is the client's from now on.
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

// SetTimeout bounds the time that the shadow may take for each answer.
func (c *Client) SetTimeout(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timeout = d
	c.link.stream.SetTimeout(d)
}

// SetVersion says which version the shadow is, from ShadowVersion of the
// job's ad (CondorVersion there is the submitter's). Until then, and with the
// zero version, calls that not every shadow has are not made.
func (c *Client) SetVersion(v version.Version) { c.version.Store(&v) }

// Version returns what SetVersion was told.
func (c *Client) Version() version.Version { return *c.version.Load() }

// LastCall returns the begin of the last exchange that the shadow has answered,
// from which the job's lease counts. HTCondor counts from its end; the shadow's
// own count lies between the two, and of the starter's it must not be said that
// it ended later.
func (c *Client) LastCall() time.Time { return *c.last.Load() }

// Encrypted says whether the connection is encrypted. Without a key of the
// claim a shadow cannot come back either.
func (c *Client) Encrypted() bool { return c.current().stream.Encrypted() }

// Close closes the connection, and no other is taken.
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

// call is one request and what is to be known about its reply.
type call struct {
	name   string
	number int64
	put    func(s *cedar.Stream) // the fields of the request; may be nil
	// noErrno says that a negative result is not followed by a reason, and
	// that the fields come with any result.
	noErrno bool
	// bare says that there is no result at all, only fields.
	bare bool
	// whole says that the reply is read to its end by who takes its fields.
	whole bool
	// noReply says that the shadow does not answer.
	noReply bool
	// last says that the shadow hangs up after this call.
	last bool
	// on is the connection that the call makes sense on; nil for any.
	on *link
}

// answer is what came of a call.
type answer[T any] struct {
	value  T
	result int64
	err    error
	on     *link // the connection that it came on
}

// none takes no fields out of a reply.
func none(*cedar.Stream, int64) (struct{}, error) { return struct{}{}, nil }

// tell makes a call whose reply has no fields, and returns its result.
func (c *Client) tell(ctx context.Context, call call) (int64, error) {
	a := ask(ctx, c, call, none)
	return a.result, a.err
}

// ask makes a call. When the result is not negative, get takes the fields of
// the reply.
//
// A caller whose ctx ends while the shadow has not answered goes away with
// ctx's cause; the answer is still awaited and thrown away, so that the
// connection survives. Only a request that cannot even be written breaks it.
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
			a.err = err // and nobody knows how far the answer has been read
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

var errElsewhere = errors.New("what it is about was left behind on an earlier one")

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

// harmless says of an error in a reply that the message was read to its end
// nevertheless.
func harmless(err error) bool {
	var badAd *cedar.AdError
	var refusal *CallError
	return errors.As(err, &badAd) || errors.As(err, &refusal)
}

// settle says what an exchange means to the connection; who calls it has the
// turn.
func (c *Client) settle(l *link, call call, begin time.Time, err error) error {
	if err != nil && !harmless(err) {
		// Half a message may be on its way in either direction.
		return fmt.Errorf("shadow call %s: %w", call.name, l.breakUp(err))
	}
	if !call.noReply {
		// What was only sent may never have arrived.
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

// since says why a call cannot be made with the shadow's version, or nil.
func (c *Client) since(name string, major, minor, patch int) error {
	v := c.Version()
	if v.AtLeast(major, minor, patch) {
		return nil
	}
	return fmt.Errorf("shadow call %s: %w: it is %s, the call came with %d.%d.%d", name, ErrUnsupported, v, major, minor, patch)
}
