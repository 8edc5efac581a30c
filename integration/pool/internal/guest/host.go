package guest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"podstarter/integration/pool/internal/statedir"
)

// A Host runs guests: it owns their network and their kernels, and connects other processes to their commands' port.
type Host struct {
	// Socket is the path of a Unix socket, see Dial.
	Socket string
	Guests []Placed
}

// Placed is a guest with its place in the network.
type Placed struct {
	Machine
	Address string
}

// Port is where each guest serves commands (package channel).
const Port = 1022

// A Switch connects guests with each other and with the host.
type Switch interface {
	// Attach returns the guest's end of a new wire.
	Attach(name string, mac net.HardwareAddr) (*os.File, error)
	// Detach removes the wire of a guest that has ended.
	Detach(name string) error
	// DialContext connects to a port of a guest.
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
	// Cut drops what a guest and others send each other; without others, what it and all guests send each other.
	Cut(name string, others ...string) error
	// Heal ends everything that Cut began.
	Heal()
}

// ReadHost reads the file that Write wrote.
func ReadHost(path string) (Host, error) {
	var h Host
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &h)
	}
	if err != nil {
		return h, fmt.Errorf("reading what the guests are: %w", err)
	}
	return h, nil
}

// Write writes the host's guests to path.
func (h Host) Write(path string) error { return statedir.WriteJSON(path, h) }

// HaltTime is how long a guest has to power off.
const HaltTime = 10 * time.Second

// Run runs the guests and returns when all have ended, unless the last one ended by an order: it can be booted again. At the
// end of ctx it asks them to power off, and ends those that do not.
func (h Host) Run(ctx context.Context, wires Switch, console io.Writer) error {
	listener, err := h.listen()
	if err != nil {
		return fmt.Errorf("listening for commands: %w", err)
	}
	defer listener.Close()
	f := newFleet(h.Guests, wires, console)
	defer f.killAll()
	for _, g := range h.Guests {
		if err := f.boot(g.Name); err != nil {
			return err
		}
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go h.serve(serving, listener, wires, f.orders)
	return f.run(ctx)
}

func (h Host) listen() (net.Listener, error) {
	if err := os.Remove(h.Socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(h.Socket), 0o711); err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", h.Socket)
	if err != nil {
		return nil, err
	}
	// Who connects is root in a guest.
	if err := os.Chmod(h.Socket, 0o600); err != nil {
		listener.Close()
		return nil, err
	}
	return listener, nil
}

// maxLine bounds the first line of a connection in bytes.
const maxLine = 200

// connectWord begins the first line of a client that wants to be connected to a guest's commands; the guest's name follows.
// Other first lines are orders.
const connectWord = "connect"

// serve does what each client's first line says.
func (h Host) serve(ctx context.Context, listener net.Listener, wires Switch, orders chan<- order) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				slog.Error("commands are no longer taken", "err", err)
			}
			return
		}
		go func() {
			defer conn.Close()
			if err := h.answer(ctx, conn, wires, orders); err != nil {
				slog.Debug("a client's connection has ended", "err", err)
			}
		}()
	}
}

func (h Host) answer(ctx context.Context, client net.Conn, wires Switch, orders chan<- order) error {
	in := bufio.NewReaderSize(client, maxLine)
	line, err := in.ReadSlice('\n')
	if err != nil {
		return fmt.Errorf("reading what a client wants: %w", err)
	}
	words := strings.Fields(string(line))
	if len(words) > 0 && words[0] == connectWord {
		return h.connect(ctx, client, in, wires, strings.Join(words[1:], " "))
	}
	answer := "done\n"
	o := order{words: words, done: make(chan error, 1)}
	select {
	case orders <- o:
		if err := <-o.done; err != nil {
			answer = err.Error() + "\n"
		}
	case <-ctx.Done():
		answer = "the guests are about to end\n"
	}
	_, err = io.WriteString(client, answer)
	return err
}

func (h Host) connect(ctx context.Context, client net.Conn, in io.Reader, wires Switch, name string) error {
	address := ""
	for _, g := range h.Guests {
		if g.Name == name {
			address = g.Address
		}
	}
	if address == "" {
		return fmt.Errorf("no guest has the name %q", name)
	}
	guest, err := wires.DialContext(ctx, "tcp", net.JoinHostPort(address, strconv.Itoa(Port)))
	if err != nil {
		return err
	}
	defer guest.Close()
	// The client waits for this line, so that a guest which does not listen yet is not an end of its command.
	if _, err := io.WriteString(client, "connected\n"); err != nil {
		return err
	}
	var both sync.WaitGroup
	both.Go(func() { pass(guest, in) })
	both.Go(func() { pass(client, guest) })
	both.Wait()
	return nil
}

// pass copies all bytes and then the end of the stream.
func pass(to net.Conn, from io.Reader) {
	_, err := io.Copy(to, from)
	half, ok := to.(interface{ CloseWrite() error })
	if err != nil || !ok {
		to.Close()
		return
	}
	_ = half.CloseWrite()
}
