package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// echo is a Switch on which every port of the guest at its address sends back what it gets, then says goodbye.
type echo string

func (echo) Attach(string, net.HardwareAddr) (*os.File, error) {
	return nil, errors.New("there are no wires")
}

func (echo) Detach(string) error         { return nil }
func (echo) Cut(string, ...string) error { return nil }
func (echo) Heal()                       {}

func (e echo) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if address != fmt.Sprintf("%s:%d", string(e), Port) {
		return nil, fmt.Errorf("nothing listens on %s", address)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() {
		defer listener.Close()
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.Copy(conn, conn)
		_, _ = io.WriteString(conn, "bye")
	}()
	return new(net.Dialer).DialContext(ctx, network, listener.Addr().String())
}

func TestDial(t *testing.T) {
	h := Host{Socket: filepath.Join(shortDir(t), "sock"), Guests: []Placed{
		{Machine: Machine{Name: "one"}, Address: "198.18.0.2"}, {Machine: Machine{Name: "off"}, Address: "198.18.0.3"},
	}}
	if _, err := Dial(t.Context(), h.Socket, "one"); !errors.Is(err, ErrNotConnected) {
		t.Errorf("Dial without a host: %v", err)
	}
	listener, err := net.Listen("unix", h.Socket)
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		h.serve(t.Context(), listener, echo("198.18.0.2"), nil)
	}()
	for _, name := range []string{"off", "none", ""} {
		if _, err := Dial(t.Context(), h.Socket, name); !errors.Is(err, ErrNotConnected) {
			t.Errorf("Dial of %q: %v", name, err)
		}
	}
	conn, err := Dial(t.Context(), h.Socket, "one")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "hello "); err != nil {
		t.Fatal(err)
	}
	// The end of one direction arrives, and the other stays open.
	if err := conn.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(conn); err != nil || string(got) != "hello bye" {
		t.Errorf("the guest sends %q, %v", got, err)
	}
	listener.Close()
	<-served
}
