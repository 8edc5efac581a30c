package channel

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// Serve runs the commands that clients ask for, one a connection, until the context or the listener ends. Then it kills the
// commands that still run, and returns when they have ended. It closes the listener. The error is nil if the context
// ended.
//
// The end of a connection kills the command's process group. Processes that made a group or a session of their own, as
// daemons do, are left alone.
func Serve(ctx context.Context, listener net.Listener) error {
	serving, end := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { end(errServerEnds) })
	defer stop()
	var connections sync.WaitGroup
	defer connections.Wait()
	defer end(errServerEnds)
	context.AfterFunc(serving, func() { listener.Close() })
	for {
		conn, err := listener.Accept()
		if ctx.Err() != nil {
			if err == nil {
				conn.Close()
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("waiting for commands on %s: %w", listener.Addr(), err)
		}
		connections.Go(func() { serveConn(serving, conn) })
	}
}

// lastWords is how long the end of the server waits for clients to take what it still has to tell them.
const lastWords = time.Second

func serveConn(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now().Add(lastWords)) })
	defer stop()
	first, err := readFrame(conn)
	if err != nil {
		return // nobody is there to tell
	}
	out := &sender{conn: conn}
	received := make(chan struct{})
	s, err := start(first, out)
	if err != nil {
		fail(out, err)
		go func() {
			defer close(received)
			_, _ = io.Copy(io.Discard, conn)
		}()
	} else {
		ctx, cancel := context.WithCancelCause(ctx)
		go func() {
			defer close(received)
			cancel(s.receive(conn))
		}()
		status, err := s.wait(ctx)
		if err == nil {
			err = out.send(frameExit, exitFrame(status)...)
		}
		if err != nil {
			fail(out, err)
		}
	}
	// Closing a connection whose bytes were not all read resets it, and the client would lose what was just sent: the
	// client closes first.
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	<-received
}

func exitFrame(status syscall.WaitStatus) []byte {
	if status.Signaled() {
		return []byte{0, byte(status.Signal())}
	}
	return []byte{byte(status.ExitStatus()), 0}
}

func fail(out *sender, err error) {
	text := err.Error()
	_ = out.send(frameFailure, []byte(text[:min(len(text), failureSize)])...)
}

var (
	errServerEnds = errors.New("the guest's command server ended and killed the command")
	// errGone ends a session whose client ended its side of the connection before the command ended.
	errGone = errors.New("the client is gone; the command was killed")
)
