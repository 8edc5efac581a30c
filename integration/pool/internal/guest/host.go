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

	"golang.org/x/sync/errgroup"

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
	// DialContext connects to a port of a guest.
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
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

// Run runs the guests and returns when all have ended. At the end of ctx it asks them to power off, and ends those that
// do not.
func (h Host) Run(ctx context.Context, wires Switch, console io.Writer) error {
	if err := os.Remove(h.Socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("listening for commands: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(h.Socket), 0o711); err != nil {
		return fmt.Errorf("listening for commands: %w", err)
	}
	listener, err := net.Listen("unix", h.Socket)
	if err != nil {
		return fmt.Errorf("listening for commands: %w", err)
	}
	defer listener.Close()
	// Who connects is root in a guest.
	if err := os.Chmod(h.Socket, 0o600); err != nil {
		return fmt.Errorf("listening for commands: %w", err)
	}
	var guests errgroup.Group
	for _, g := range h.Guests {
		g.Console = console
		mac, err := net.ParseMAC(g.MAC)
		if err == nil {
			g.Wire, err = wires.Attach(g.Name, mac)
		}
		if err != nil {
			return fmt.Errorf("connecting the guest %s: %w", g.Name, err)
		}
		guests.Go(func() error {
			defer g.Wire.Close()
			return g.runToEnd(ctx)
		})
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go h.serve(serving, listener, wires)
	return guests.Wait()
}

// runToEnd is Run with an end in order.
func (m Machine) runToEnd(ctx context.Context) error {
	running, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	stop := context.AfterFunc(ctx, func() {
		if err := m.Halt(); err != nil {
			slog.Warn("the guest is ended at once", "err", err)
			kill()
			return
		}
		select {
		case <-time.After(HaltTime):
			slog.Warn("the guest did not power off and is ended", "guest", m.Name, "after", HaltTime)
			kill()
		case <-running.Done():
		}
	})
	defer stop()
	err := m.Run(running)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// maxName bounds the first line of a connection in bytes.
const maxName = 100

// serve connects each client to the guest that the client's first line names.
func (h Host) serve(ctx context.Context, listener net.Listener, wires Switch) {
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
			if err := h.connect(ctx, conn, wires); err != nil {
				slog.Debug("a connection for commands has ended", "err", err)
			}
		}()
	}
}

func (h Host) connect(ctx context.Context, client net.Conn, wires Switch) error {
	in := bufio.NewReaderSize(client, maxName)
	line, err := in.ReadSlice('\n')
	if err != nil {
		return fmt.Errorf("reading a guest's name: %w", err)
	}
	name := strings.TrimSuffix(string(line), "\n")
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

// ErrNotConnected says that the guest does not listen, or not yet.
var ErrNotConnected = errors.New("the guest does not take commands")

// Dial connects to a guest of the Host that listens on socket.
func Dial(ctx context.Context, socket, name string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotConnected, err)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	_, err = io.WriteString(conn, name+"\n")
	answer := make([]byte, len("connected\n"))
	if err == nil {
		_, err = io.ReadFull(conn, answer)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("%w: %w", ErrNotConnected, err)
	}
	return conn, nil
}
