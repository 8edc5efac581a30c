package payload

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"podstarter/payload/memcg"
	"podstarter/rescue"
)

// Options say which wrapper to connect to.
type Options struct {
	// Dir is the payload container's control directory. It need not exist yet.
	Dir string
	// Nonce that the wrapper must announce; empty accepts any wrapper.
	Nonce string
	// User is the user ID that the wrapper runs as, if that is neither root nor this process's user: then only that one is
	// believed. 0 for the usual.
	User int
	// Log gets debug messages; nil for none.
	Log *slog.Logger

	poll time.Duration                            // slowPoll, except in tests
	peer func(*net.UnixConn) (*unix.Ucred, error) // credentialsOf, except in tests
}

// Client is the starter's end of a connection to a wrapper. Its methods may be
// called from several goroutines.
//
// A call whose context ends returns the context's error; the wrapper still carries out the
// request. A call on a connection that has ended returns an error that is [ErrLost].
type Client struct {
	conn    *net.UnixConn
	hello   Hello
	peerPID int
	cgroups string
	dir     string
	log     *slog.Logger

	writing sync.Mutex // one request line at a time

	mu         sync.Mutex
	nextID     int64
	waiting    map[int64]chan Message
	activation string        // of the latest successful start
	exit       Exit          // valid once exited is closed
	exited     chan struct{} // closed by the exit of the latest start; nil before the first
	executions map[int64]*execution
	memory     *memcg.Files // nil if none came
	asking     *question    // nil when no usage request is pending
	starts     int64        // number of requests that may have started something
	swept      int64        // number of them before the last successful sweep
	cause      error        // why the connection ended, valid once lost is closed
	lost       chan struct{}

	stopping chan struct{} // closed when the wrapper says so
}

func newClient(conn *net.UnixConn, dir string, log *slog.Logger) *Client {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Client{
		conn: conn, dir: dir, log: log,
		waiting: make(map[int64]chan Message),

		executions: make(map[int64]*execution),

		lost:     make(chan struct{}),
		stopping: make(chan struct{}),
	}
}

// Hello is the wrapper's announcement.
func (c *Client) Hello() Hello { return c.hello }

// SharesPIDNamespace tells whether process IDs from the wrapper are valid in this process's
// PID namespace, and hence whether its /proc shows the payload.
func (c *Client) SharesPIDNamespace() bool {
	return c.hello.PIDNamespace != "" && c.hello.PIDNamespace == pidNamespace() && c.peerPID == c.hello.PID
}

// SeenPID is the wrapper's process ID in this process's PID namespace, whose /proc then shows the payload; 0 if it does not. The kernel says
// which, not the wrapper.
func (c *Client) SeenPID() int {
	if c.SharesPIDNamespace() || c.hello.OwnProcesses {
		return c.peerPID
	}
	return 0
}

// Cgroups gives the wrapper's control groups as the kernel shows them to this process:
// lines of /proc/PID/cgroup (cgroups(7)). It is empty if the wrapper did not pass the file
// on; see [CgroupFile].
func (c *Client) Cgroups() string { return c.cgroups }

// Memory is the container's memory control group, which can be looked at whatever becomes of
// the wrapper; nil if that is not the payload's or cannot be read. It is there at the latest
// when a request has been answered, and is closed with the connection.
func (c *Client) Memory() *memcg.Files {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.memory
}

// Start starts a payload. A failure to start is a *[StartError]. When the main
// process of one start has ended, another may be started on the same
// connection: a script before the job, or the job again after a checkpoint.
//
// The files are those that s.Passed names. The payload gets duplicates; the caller keeps
// and closes its own.
func (c *Client) Start(ctx context.Context, s Spec, files ...*os.File) (Started, error) {
	err := s.Validate()
	if err == nil && len(files) != len(s.Passed) {
		err = fmt.Errorf("%d files were given for the standard files %v", len(files), s.Passed)
	}
	if err != nil {
		return Started{}, &StartError{Stage: StageSpec, Detail: err.Error()}
	}
	m, err := c.call(ctx, Request{Op: OpStart, Spec: &s}, files...)
	switch {
	case err != nil:
		return Started{}, err
	case m.StartError != nil:
		return Started{}, m.StartError
	case m.Started != nil:
		return *m.Started, nil
	}
	return Started{}, c.protocolError("this does not answer a start request: %+v", m)
}

// Signal sends sig to the main process, or to every process of the payload. After the main
// process has ended only the latter is possible. If there was nothing to signal, the error
// is a *[RequestError] with [CodeNoPayload].
func (c *Client) Signal(ctx context.Context, sig syscall.Signal, whole bool) error {
	return c.do(ctx, Request{Op: OpSignal, Signal: int(sig), Whole: whole})
}

// Usage asks for the payload's usage as the wrapper sees it. Only one usage request is
// pending at a time, even if its caller has given up: later callers share its answer.
func (c *Client) Usage(ctx context.Context) (ContainerUsage, error) {
	c.mu.Lock()
	q := c.asking
	if q == nil {
		q = &question{done: make(chan struct{})}
		c.asking = q
		rescue.Go(func() { c.ask(q) })
	}
	c.mu.Unlock()
	select {
	case <-q.done:
		return q.usage, q.err
	case <-ctx.Done():
		return ContainerUsage{}, fmt.Errorf("%s request to the wrapper in %s: %w", OpUsage, c.dir, context.Cause(ctx))
	}
}

// question is a pending usage request.
type question struct {
	done  chan struct{} // closed when the rest is valid
	usage ContainerUsage
	err   error
}

// ask sends the request and returns at the latest when the connection ends.
func (c *Client) ask(q *question) {
	m, err := c.call(context.Background(), Request{Op: OpUsage})
	switch {
	case err != nil:
		q.err = err
	case m.Usage != nil:
		q.usage = *m.Usage
	default:
		q.err = c.protocolError("this does not answer a usage request: %+v", m)
	}
	c.mu.Lock()
	c.asking = nil
	c.mu.Unlock()
	close(q.done)
}

// Sweep kills every process of the payload and returns when none is left. If some would not
// die, the error is a *[RequestError] with [CodeNotEmpty] that names them.
func (c *Client) Sweep(ctx context.Context) error {
	c.mu.Lock()
	asked := c.starts
	c.mu.Unlock()
	err := c.do(ctx, Request{Op: OpSweep})
	if err == nil {
		c.mu.Lock()
		c.swept = max(c.swept, asked)
		c.mu.Unlock()
	}
	return err
}

// Empty tells whether a sweep has ended everything that was started on this connection.
func (c *Client) Empty() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.swept == c.starts
}

// Leave tells the wrapper to kill the payload and exit, and waits until the
// connection has ended.
func (c *Client) Leave(ctx context.Context) error {
	if err := c.do(ctx, Request{Op: OpLeave}); err != nil && !errors.Is(err, ErrLost) {
		return err
	}
	select {
	case <-c.lost:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for the wrapper in %s to leave: %w", c.dir, context.Cause(ctx))
	}
}

// Wait waits for the main process of the latest start to end. If the connection ends first,
// it reads the exit record in the control directory; without a record the error is
// [ErrLost].
func (c *Client) Wait(ctx context.Context) (Exit, error) {
	c.mu.Lock()
	exited, activation := c.exited, c.activation
	c.mu.Unlock()
	if exited == nil {
		return Exit{}, fmt.Errorf("wait for a payload: no payload was started")
	}
	select {
	case <-exited:
	case <-c.lost:
	case <-ctx.Done():
		return Exit{}, fmt.Errorf("wait for the payload of %s: %w", activation, context.Cause(ctx))
	}
	c.mu.Lock()
	exit, lost := c.exit, c.cause
	c.mu.Unlock()
	select {
	case <-exited:
		return exit, nil
	default:
	}
	exit, err := ReadExit(c.dir, activation)
	if err != nil {
		return Exit{}, fmt.Errorf("wait for the payload of %s: %w (and %w)", activation, lost, err)
	}
	return exit, nil
}

// Stopping is closed when the wrapper's container has been told to stop: its pod is being
// taken down. The payload runs on; when the container's grace period is over, everything in
// it is killed. The starter must end the job before that.
func (c *Client) Stopping() <-chan struct{} { return c.stopping }

// Lost is closed when the connection has ended for any reason.
func (c *Client) Lost() <-chan struct{} { return c.lost }

// Close ends the connection, and with it the payload. It is safe to call more
// than once.
func (c *Client) Close() error {
	err := c.conn.Close()
	<-c.lost
	c.Memory().Close()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
