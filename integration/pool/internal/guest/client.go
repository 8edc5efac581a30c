package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
)

// ErrNotConnected says that the guest does not listen, or not yet.
var ErrNotConnected = errors.New("the guest does not take commands")

// Dial connects to the commands' port of a guest of the Host that listens on socket.
func Dial(ctx context.Context, socket, name string) (net.Conn, error) {
	conn, err := ask(ctx, socket, connectWord, name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotConnected, err)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	answer := make([]byte, len("connected\n"))
	if _, err := io.ReadFull(conn, answer); err != nil {
		conn.Close()
		return nil, fmt.Errorf("%w: %w", ErrNotConnected, err)
	}
	return conn, nil
}

// maxAnswer bounds the answer to an order in bytes.
const maxAnswer = 10 << 10

// Order tells the Host that listens on socket to do one of Orders, and returns when that is done.
func Order(ctx context.Context, socket string, words ...string) error {
	conn, err := ask(ctx, socket, words...)
	if err != nil {
		return fmt.Errorf("telling the guests' daemon to %q: %w", words, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	answer, err := io.ReadAll(io.LimitReader(conn, maxAnswer))
	if err == nil && string(answer) != "done\n" {
		err = errors.New(strings.TrimSpace(string(answer)))
	}
	if err != nil {
		return fmt.Errorf("telling the guests' daemon to %q: %w", words, err)
	}
	return nil
}

// ask sends the first line.
func ask(ctx context.Context, socket string, words ...string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	if _, err := io.WriteString(conn, strings.Join(words, " ")+"\n"); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}
