package payload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"podstarter/payload/memcg"
)

// call sends a request and waits for its answer.
func (c *Client) call(ctx context.Context, r Request, files ...*os.File) (Message, error) {
	return c.callFor(ctx, nil, r, files...)
}

// callFor also registers x, the process that the request may start, to be told of its end.
func (c *Client) callFor(ctx context.Context, x *execution, r Request, files ...*os.File) (Message, error) {
	r.Files = len(files)
	answer, id, err := c.register(x)
	if err != nil {
		return Message{}, err
	}
	defer c.forget(id)
	r.ID = id
	if r.Op == OpStart || r.Op == OpExec {
		c.mu.Lock()
		c.starts++
		c.mu.Unlock()
	}
	if err := c.send(ctx, r, files); err != nil {
		return Message{}, err
	}
	select {
	case m := <-answer:
		return c.checked(r.Op, m)
	case <-ctx.Done():
		return Message{}, fmt.Errorf("%s request to the wrapper in %s: %w", r.Op, c.dir, context.Cause(ctx))
	case <-c.lost:
	}
	select {
	case m := <-answer: // the answer came just before the end
		return c.checked(r.Op, m)
	default:
		return Message{}, c.lostCause()
	}
}

func (c *Client) checked(op string, m Message) (Message, error) {
	if m.Error != nil {
		m.Error.Op = op
		return m, m.Error
	}
	return m, nil
}

// do is call for requests that are only answered with "done".
func (c *Client) do(ctx context.Context, r Request) error {
	m, err := c.call(ctx, r)
	if err == nil && !m.Done {
		return c.protocolError("this does not answer a %s request: %+v", r.Op, m)
	}
	return err
}

func (c *Client) register(x *execution) (chan Message, int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		return nil, 0, c.cause
	}
	c.nextID++
	answer := make(chan Message, 1)
	c.waiting[c.nextID] = answer
	if x != nil {
		x.id = c.nextID
		c.executions[x.id] = x
	}
	return answer, c.nextID, nil
}

func (c *Client) forget(id int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.waiting, id)
}

// writeTimeout bounds the writing of a request. A wrapper always reads; treat one that does
// not as dead.
const writeTimeout = 30 * time.Second

func (c *Client) send(ctx context.Context, r Request, files []*os.File) error {
	line, err := EncodeLine(r)
	if err != nil {
		return fmt.Errorf("encode a %s request: %w", r.Op, err)
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if err := ctx.Err(); err != nil {
		return context.Cause(ctx)
	}
	// If the end of ctx cut a line short, the connection would be useless. So use this
	// package's own bound.
	if err := c.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return c.fail(err)
	}
	if err := SendFiles(c.conn, line, files); err != nil {
		return c.fail(fmt.Errorf("send a %s request: %w", r.Op, err))
	}
	return nil
}

// fail ends the connection and returns why it ended; it may have ended for another reason
// just before.
func (c *Client) fail(err error) error {
	c.end(err)
	return c.lostCause()
}

func (c *Client) lostCause() error {
	<-c.lost
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

func (c *Client) protocolError(format string, args ...any) error {
	return c.fail(fmt.Errorf("the wrapper broke the protocol: "+format, args...))
}

func (c *Client) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cause != nil {
		return
	}
	switch {
	case errors.Is(err, io.EOF):
		c.cause = fmt.Errorf("%w: %s closed it", ErrLost, c.dir)
	case errors.Is(err, net.ErrClosed):
		c.cause = fmt.Errorf("%w: closed by this side", ErrLost)
	default:
		c.cause = fmt.Errorf("%w: %s: %w", ErrLost, c.dir, err)
	}
	close(c.lost)
	_ = c.conn.Close() // the payload dies with the connection, as it should
}

// receive reads messages until the connection ends.
func (c *Client) receive(lines *LineReader, files *greeting) {
	for {
		line, err := lines.Next()
		if err != nil {
			files.over()
			c.end(err)
			return
		}
		m, err := DecodeMessage(line)
		if err != nil {
			files.over()
			c.end(fmt.Errorf("the wrapper broke the protocol: %w in %.200q", err, line))
			return
		}
		if m.Memory != nil {
			c.remember(m.Memory, files.rest())
			continue
		}
		c.dispatch(m)
	}
}

// remember keeps the files of the container's memory control group, once.
func (c *Client) remember(m *MemoryFiles, files []*os.File) {
	group, err := memcg.NewFiles(m.Version, m.LimitAbove, m.Files, files, memcg.OfCgroup)
	if err != nil {
		c.log.Warn("The wrapper's memory control group cannot be looked at", "error", err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.memory != nil {
		group.Close()
		return
	}
	c.memory = group
}

func (c *Client) dispatch(m Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.Exit != nil {
		if c.exited != nil && m.Exit.Activation == c.activation {
			select {
			case <-c.exited:
			default:
				c.exit = *m.Exit
				close(c.exited)
			}
		}
		return
	}
	if m.ExecExit != nil {
		if x, ok := c.executions[m.ExecExit.Exec]; ok {
			delete(c.executions, x.id)
			x.status = syscall.WaitStatus(m.ExecExit.WaitStatus)
			close(x.ended)
		}
		return
	}
	if m.Stopping {
		select {
		case <-c.stopping:
		default:
			close(c.stopping)
		}
		return
	}
	if m.Started != nil {
		// Not left to the caller of Start: the exit may be the next line, and the caller may
		// have given up.
		c.activation, c.exited = m.Started.Activation, make(chan struct{})
	}
	if m.StartError != nil || m.Error != nil {
		delete(c.executions, m.ID) // if it was one
	}
	if answer, ok := c.waiting[m.ID]; ok {
		delete(c.waiting, m.ID)
		answer <- m
		return
	}
	c.log.Debug("the wrapper sent an answer that nobody waits for", "id", m.ID)
}

func pidNamespace() string {
	link, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return link
}
