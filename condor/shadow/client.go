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
// [Client.LastCall], has run out; a shadow that comes back brings a new socket
// and so a new Client.
package shadow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"syscall"
	"time"

	"podstarter/cedar"
	"podstarter/condor/dlog"
	"podstarter/condor/version"
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
	log    *slog.Logger
	stream *cedar.Stream

	turn     chan struct{} // holds one token; whoever has it may use stream
	version  atomic.Pointer[version.Version]
	last     atomic.Int64 // Unix nanoseconds of the end of the last exchange
	lost     chan struct{}
	broken   error // what broke the connection; under turn
	finished bool  // the shadow is expected to hang up; under turn
	closed   atomic.Bool
	watch    *watch
}

// New makes a client of an adopted stream and begins to watch the socket for
// its end. The stream is the client's from now on.
func New(s *cedar.Stream, log *slog.Logger) *Client {
	c := &Client{
		log:    log.With(dlog.In(dlog.Syscalls)),
		stream: s,
		turn:   make(chan struct{}, 1),
		lost:   make(chan struct{}),
	}
	c.version.Store(&version.Version{})
	c.turn <- struct{}{}
	s.SetTimeout(DefaultTimeout)
	c.stamp()
	c.watch = startWatch(c, s.Conn())
	return c
}

// SetTimeout bounds the time that the shadow may take for each answer.
func (c *Client) SetTimeout(d time.Duration) { c.stream.SetTimeout(d) }

// SetVersion says which version the shadow is, from ShadowVersion of the
// job's ad (CondorVersion there is the submitter's). Until then, and with the
// zero version, calls that not every shadow has are not made.
func (c *Client) SetVersion(v version.Version) { c.version.Store(&v) }

// Version returns what SetVersion was told.
func (c *Client) Version() version.Version { return *c.version.Load() }

// LastCall returns the end of the last exchange with the shadow, from which
// the job's lease counts.
func (c *Client) LastCall() time.Time { return time.Unix(0, c.last.Load()) }

// Lost is closed when the connection is lost, be it during a call or while
// idle. It is not closed by a shadow that hangs up after JobExit or after a
// critical ReportError, as it should.
func (c *Client) Lost() <-chan struct{} { return c.lost }

// Close closes the connection.
func (c *Client) Close() error {
	c.closed.Store(true)
	c.watch.stop()
	return c.stream.Close()
}

func (c *Client) stamp() { c.last.Store(time.Now().UnixNano()) }

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
}

// answer is what came of a call.
type answer[T any] struct {
	value  T
	result int64
	err    error
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
	if c.broken != nil {
		return refuse(c.broken)
	}
	if err := context.Cause(ctx); err != nil {
		return refuse(err)
	}
	c.log.Info("Doing CONDOR_" + call.name)
	if err := c.request(ctx, call); err != nil {
		return refuse(c.breakUp(err))
	}
	done := make(chan answer[T], 1)
	go func() {
		defer func() { c.turn <- struct{}{} }()
		a := reply(c.stream, call, get)
		a.err = c.settle(call, a.err)
		done <- a
	}()
	select {
	case a := <-done:
		return a
	case <-ctx.Done():
		return answer[T]{err: fmt.Errorf("shadow call %s: waiting for the answer: %w", call.name, context.Cause(ctx))}
	}
}

func (c *Client) request(ctx context.Context, call call) error {
	defer c.stream.Cancel(ctx)()
	c.stream.PutInt(call.number)
	if call.put != nil {
		call.put(c.stream)
	}
	return c.stream.EndMessage()
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
func (c *Client) settle(call call, err error) error {
	if err != nil && !harmless(err) {
		// Half a message may be on its way in either direction.
		return fmt.Errorf("shadow call %s: %w", call.name, c.breakUp(err))
	}
	c.stamp()
	if call.last {
		c.finished = true
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

// breakUp records that the connection is of no use any more; the caller has
// the turn.
func (c *Client) breakUp(cause error) error {
	if c.broken == nil {
		c.broken = fmt.Errorf("%w: %w", ErrLost, cause)
		c.stream.Close()
		if !c.closed.Load() {
			close(c.lost)
		}
	}
	return c.broken
}

// since says why a call cannot be made with the shadow's version, or nil.
func (c *Client) since(name string, major, minor, patch int) error {
	v := c.Version()
	if v.AtLeast(major, minor, patch) {
		return nil
	}
	return fmt.Errorf("shadow call %s: %w: it is %s, the call came with %d.%d.%d", name, ErrUnsupported, v, major, minor, patch)
}
