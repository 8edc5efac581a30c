package qmgmt

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"podstarter/internal/cedar"
)

// commandWrite is QMGMT_WRITE_CMD (condor_includes/condor_commands.h).
const commandWrite = 1112

// Numbers of the calls (src/condor_schedd.V6/qmgmt_constants.h).
const (
	callCommitNoFlags     = 10007
	callGetAttributeInt   = 10009
	callGetAttributeExpr  = 10011
	callSetAttribute      = 10006
	callSetAttribute2     = 10027
	callCloseSocket       = 10028
	callSetEffectiveOwner = 10030
)

// Flags of SetAttribute (src/condor_includes/condor_qmgr.h).
const flagNoAck = 1 << 1

// A RefusedError is a call that the schedd refused.
type RefusedError struct {
	Call  string // what was attempted
	Errno syscall.Errno
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("%s: the schedd refuses: %v", e.Call, e.Errno)
}

// Unwrap returns the schedd's error number.
func (e *RefusedError) Unwrap() error { return e.Errno }

// Queue is the job queue of a schedd, as one job's starter reaches it.
type Queue struct {
	Client  *cedar.Client
	Addr    string         // of the schedd
	Session *cedar.Session // on which the schedd believes this process to be its own
	User    string         // the job's User; the queue is changed in this name
}

// conn is one connection, which is one transaction. It is not safe for concurrent use.
type conn struct {
	s    *cedar.Stream
	stop func()
}

// connect begins a transaction (qmgr_lib_support.cpp:ConnectQ).
func (q Queue) connect(ctx context.Context) (*conn, error) {
	s, err := q.Client.Command(ctx, q.Addr, commandWrite, q.Session)
	if err != nil {
		return nil, fmt.Errorf("connect to the job queue of the schedd: %w", err)
	}
	c := &conn{s: s, stop: s.Cancel(ctx)}
	if q.User == "" {
		return c, nil
	}
	s.PutInt(callSetEffectiveOwner)
	s.PutString(q.User)
	if err := c.ask("change the job queue in the name of " + q.User); err != nil {
		c.abandon()
		return nil, err
	}
	return c, nil
}

// ask sends a call and takes its result; what follows the result is left to the caller only if
// more is given.
func (c *conn) ask(call string, more ...func() error) error {
	fail := func(err error) error { return fmt.Errorf("%s: %w", call, err) }
	if err := c.s.EndMessage(); err != nil {
		return fail(err)
	}
	result, err := c.s.GetInt()
	if err != nil {
		return fail(err)
	}
	if result < 0 {
		return c.refused(call)
	}
	for _, get := range more {
		if err := get(); err != nil {
			return fail(err)
		}
	}
	// A commit may be answered with an ad of warnings, which is of no use here.
	if err := c.s.EndOfMessage(); err != nil && !errors.Is(err, cedar.ErrLeftover) {
		return fail(err)
	}
	return nil
}

// refused takes the rest of the answer to a call that failed.
func (c *conn) refused(call string) error {
	number, err := c.s.GetInt()
	if err != nil {
		return fmt.Errorf("%s: the schedd refuses and does not say why: %w", call, err)
	}
	if err := c.s.EndOfMessage(); err != nil && !errors.Is(err, cedar.ErrLeftover) {
		return fmt.Errorf("%s: %w", call, err)
	}
	if number <= 0 || number > maxErrno {
		number = int64(syscall.EIO)
	}
	return &RefusedError{call, syscall.Errno(number)}
}

// maxErrno is the largest error number of Linux (asm-generic/errno.h, MAX_ERRNO).
const maxErrno = 4095

// set changes an attribute. Whether the schedd agrees is known at the commit.
func (c *conn) set(id JobID, name, expr string) error {
	c.s.PutInt(callSetAttribute2)
	c.s.PutInt(int64(id.Cluster))
	c.s.PutInt(int64(id.Proc))
	c.s.PutString(expr)
	c.s.PutString(name)
	c.s.PutBytes([]byte{flagNoAck}) // the one value that is no number of 8 bytes
	if err := c.s.EndMessage(); err != nil {
		return fmt.Errorf("set %s in the job queue: %w", name, err)
	}
	return nil
}

// setAtOnce changes an attribute and waits for the answer.
func (c *conn) setAtOnce(id JobID, name, expr string) error {
	c.s.PutInt(callSetAttribute)
	c.s.PutInt(int64(id.Cluster))
	c.s.PutInt(int64(id.Proc))
	c.s.PutString(expr)
	c.s.PutString(name)
	return c.ask("set " + name + " in the job queue")
}

// integer reads an attribute.
func (c *conn) integer(id JobID, name string) (n int64, err error) {
	c.s.PutInt(callGetAttributeInt)
	c.s.PutInt(int64(id.Cluster))
	c.s.PutInt(int64(id.Proc))
	c.s.PutString(name)
	err = c.ask("read "+name+" in the job queue", func() (err error) {
		n, err = c.s.GetInt()
		return err
	})
	return n, err
}

// expression reads an attribute as text.
func (c *conn) expression(id JobID, name string) (text string, err error) {
	c.s.PutInt(callGetAttributeExpr)
	c.s.PutInt(int64(id.Cluster))
	c.s.PutInt(int64(id.Proc))
	c.s.PutString(name)
	err = c.ask("read "+name+" in the job queue", func() (err error) {
		text, err = c.s.GetString()
		return err
	})
	return text, err
}

// commit makes all changes, or none.
func (c *conn) commit() error {
	c.s.PutInt(callCommitNoFlags)
	return c.ask("commit changes of the job queue")
}

// close ends the connection in order; without a commit nothing was changed.
func (c *conn) close() {
	c.s.PutInt(callCloseSocket)
	_ = c.s.EndMessage() // the schedd takes the end of the connection for the same
	c.abandon()
}

func (c *conn) abandon() {
	c.stop()
	c.s.Close()
}
