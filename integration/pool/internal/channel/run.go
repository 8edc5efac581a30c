package channel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sync/errgroup"
)

// A Command is what to run at the other end.
type Command struct {
	// Args are the program and its arguments. A program without a slash is looked for in the PATH of Env.
	Args []string
	// Dir is the working directory; "" means that of the server.
	Dir string
	// Env is the whole environment; nil means that of the server.
	Env []string
	// Stdin is standard input; nil means an empty one.
	Stdin io.Reader
	// Stdout and Stderr get the output, at the same time; nil discards it.
	Stdout, Stderr io.Writer
	// Signals are passed on: SIGINT to the command's process group, as a terminal does, others to its first process.
	Signals <-chan os.Signal
}

// A request is the text of a frameRequest. Arguments and variables are bytes, which need not be UTF-8.
type request struct {
	Args [][]byte
	Dir  []byte
	Env  [][]byte
}

func toBytes(list []string) [][]byte {
	if list == nil {
		return nil
	}
	out := make([][]byte, len(list))
	for i, s := range list {
		out[i] = []byte(s)
	}
	return out
}

func toStrings(list [][]byte) []string {
	if list == nil {
		return nil
	}
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = string(b)
	}
	return out
}

// Run runs the command at the other end of conn, which it closes. It returns the exit code; 128 plus the signal's number if
// a signal ended the command. With an error, such as one for a command that could not be started, the code is -1.
//
// All that the command itself wrote has been passed on when Run returns. What it left in its process group is killed. If
// the context ends, so does the command.
//
// A Read of Stdin may outlast Run, since nothing can interrupt it.
func Run(ctx context.Context, conn net.Conn, cmd Command) (int, error) {
	if len(cmd.Args) == 0 {
		conn.Close()
		return -1, errors.New("running a command in the guest: it has no program")
	}
	code, err := run(ctx, conn, cmd)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return -1, fmt.Errorf("running %s in the guest: %w", cmd.Args[0], err)
	}
	return code, nil
}

func run(ctx context.Context, conn net.Conn, cmd Command) (int, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The first failure ends the connection, and with it everything else.
	work, ctx := errgroup.WithContext(ctx)
	context.AfterFunc(ctx, func() { conn.Close() })
	text, err := json.Marshal(request{Args: toBytes(cmd.Args), Dir: []byte(cmd.Dir), Env: toBytes(cmd.Env)})
	if err != nil {
		return 0, err
	}
	c := &client{out: &sender{conn: conn}, stdin: newCredits(), stdout: newQueue(), stderr: newQueue()}
	if err := c.out.send(frameRequest, text...); err != nil {
		return 0, fmt.Errorf("sending the command: %w", err)
	}
	go c.sendInput(ctx, cmd.Stdin)
	go c.sendSignals(ctx, cmd.Signals)

	var status frame
	for _, s := range []struct {
		kind  frameType
		queue *queue
		to    io.Writer
	}{{frameStdout, c.stdout, cmd.Stdout}, {frameStderr, c.stderr, cmd.Stderr}} {
		work.Go(func() error {
			if err := c.passOn(s.kind, s.queue, s.to); err != nil {
				return fmt.Errorf("writing its output: %w", err)
			}
			return nil
		})
	}
	work.Go(func() (err error) {
		defer c.stdout.end()
		defer c.stderr.end()
		status, err = c.receive(conn)
		return err
	})
	if err := work.Wait(); err != nil {
		return 0, err
	}
	if status.kind == frameFailure {
		return 0, errors.New(string(status.data))
	}
	if signal := int(status.data[1]); signal != 0 {
		return 128 + signal, nil
	}
	return int(status.data[0]), nil
}

type client struct {
	out            *sender
	stdin          credits
	stdout, stderr *queue
}

// sendInput reads only what may be sent at once, so that a command which does not read its input leaves it to others.
func (c *client) sendInput(ctx context.Context, from io.Reader) {
	if from != nil {
		buf := make([]byte, chunkSize)
		for {
			select {
			case <-c.stdin:
			case <-ctx.Done():
				return
			}
			n, err := readSome(from, buf)
			if n > 0 && c.out.send(frameStdin, buf[:n]...) != nil {
				return // receive finds the connection broken as well
			}
			if err != nil {
				break
			}
		}
	}
	_ = c.out.send(frameStdinEnd)
}

// readSome reads until it has something or an error.
func readSome(r io.Reader, buf []byte) (n int, err error) {
	for n == 0 && err == nil {
		n, err = r.Read(buf)
	}
	return n, err
}

func (c *client) sendSignals(ctx context.Context, signals <-chan os.Signal) {
	for {
		select {
		case s, ok := <-signals:
			if !ok {
				return
			}
			number, ok := s.(syscall.Signal)
			if ok && c.out.send(frameSignal, byte(number)) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// receive returns the frame that ends the command.
func (c *client) receive(conn net.Conn) (frame, error) {
	for {
		f, err := readFrame(conn)
		if errors.Is(err, io.EOF) {
			return frame{}, errors.New("the connection ended before the command did; see whether the guest still runs")
		}
		if err != nil {
			return frame{}, fmt.Errorf("reading from the guest: %w", err)
		}
		switch f.kind {
		case frameExit, frameFailure:
			return f, nil
		case frameStdout:
			err = c.stdout.add(f.data)
		case frameStderr:
			err = c.stderr.add(f.data)
		case frameCredit:
			err = c.stdin.add()
		default:
			err = fmt.Errorf("a frame of type %q, which only a client sends", byte(f.kind))
		}
		if err != nil {
			return frame{}, fmt.Errorf("reading from the guest: %w", err)
		}
	}
}

// passOn writes a stream's frames until its end.
func (c *client) passOn(kind frameType, q *queue, to io.Writer) error {
	for data := range q.frames {
		if to != nil {
			if _, err := to.Write(data); err != nil {
				return err
			}
		}
		// An error means that the connection is gone, which receive finds as well; what has arrived is still written.
		_ = c.out.send(frameCredit, byte(kind))
	}
	return nil
}
