package payload

import (
	"context"
	"errors"
	"log/slog"
	"syscall"
)

// Options say which wrapper to reach.
type Options struct {
	// Dir is the payload container's control directory. It need not exist yet.
	Dir string
	// Nonce the wrapper must announce; empty takes any wrapper.
	Nonce string
	// Log gets debug messages; nil for none.
	Log *slog.Logger
}

// Client is the starter's end of a connection to a wrapper. Its methods may be
// called from several goroutines.
type Client struct{}

var errNotYet = errors.New("not implemented")

// Dial waits for a wrapper that announces the wanted nonce, however long that
// takes within ctx, and connects to it.
func Dial(ctx context.Context, o Options) (*Client, error) { return nil, errNotYet }

// Hello is the wrapper's announcement.
func (c *Client) Hello() Hello { return Hello{} }

// SharesPIDNamespace tells whether process IDs from the wrapper mean the same
// to this process.
func (c *Client) SharesPIDNamespace() bool { return false }

// Start starts the payload. A failure to start is a *[StartError].
func (c *Client) Start(ctx context.Context, s Spec) (Started, error) { return Started{}, errNotYet }

// Signal sends sig to the main process, or to every process of the payload.
func (c *Client) Signal(ctx context.Context, sig syscall.Signal, whole bool) error { return errNotYet }

// Usage asks for the payload's usage as the wrapper sees it.
func (c *Client) Usage(ctx context.Context) (ContainerUsage, error) {
	return ContainerUsage{}, errNotYet
}

// Wait waits for the main process to end.
func (c *Client) Wait(ctx context.Context) (Exit, error) { return Exit{}, errNotYet }

// Sweep kills every process of the payload and returns when none is left.
func (c *Client) Sweep(ctx context.Context) error { return errNotYet }

// Leave tells the wrapper to kill the payload and exit.
func (c *Client) Leave(ctx context.Context) error { return errNotYet }

// Lost is closed when the connection has ended.
func (c *Client) Lost() <-chan struct{} { return nil }

// Close ends the connection, and with it the payload. It is safe to call more
// than once.
func (c *Client) Close() error { return nil }

// ReadExit reads the exit record of an activation from a control directory.
func ReadExit(dir, activation string) (Exit, error) { return Exit{}, errNotYet }
