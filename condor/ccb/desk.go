package ccb

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"

	"podstarter/classads"
	"podstarter/internal/cedar"
)

// A Desk knows which daemons are expected to connect to this process. The zero value
// expects nobody. It may be used concurrently.
type Desk struct {
	Log *slog.Logger // nil: none

	mu       sync.Mutex
	expected map[string]chan net.Conn // by connect id, each with room for one
}

// maxHello bounds what a daemon says first, in bytes. HTCondor's have some hundred.
const maxHello = 16 << 10

// Serve is the handler of CCB_REVERSE_CONNECT. Whoever presents a connect id that is expected
// has it from the broker, or saw it on the way there; the rest is up to the command that this
// process then sends. Others see the connection closed (ccb_client.cpp:
// ReverseConnectCommandHandler).
func (d *Desk) Serve(_ context.Context, c *cedar.Call) error {
	c.Stream.SetMessageLimit(maxHello)
	id, err := readHello(c.Stream)
	if err != nil {
		d.refused(c, err)
		return nil
	}
	// One step for those who wait: they either get it or have it closed.
	d.mu.Lock()
	defer d.mu.Unlock()
	arrived := d.expected[id]
	delete(d.expected, id)
	if arrived == nil {
		d.refused(c, errors.New("nobody waits for it: the id is wrong, or it came too late"))
		return nil
	}
	conn, early := c.Keep().Detach()
	if len(early) > 0 {
		d.refused(c, errors.New("it spoke before it was asked"))
		return conn.Close()
	}
	arrived <- conn // there is room for one
	return nil
}

// refused notes a connection that is closed. Anybody can make that happen, as often as they like.
func (d *Desk) refused(c *cedar.Call, why error) {
	if d.Log != nil {
		d.Log.Debug("refused a connection in the other direction", "peer", c.Stream.Peer(), "error", why)
	}
}

// readHello takes the rest of a CCB_REVERSE_CONNECT and returns its connect id.
func readHello(s *cedar.Stream) (string, error) {
	ad, err := getAd(s)
	if err != nil {
		return "", fmt.Errorf("read who connects: %w", err)
	}
	return ad.GetString("ClaimId")
}

func getAd(s *cedar.Stream) (*classads.Ad, error) {
	ad, err := s.GetAd()
	if err != nil {
		return nil, err
	}
	return ad, s.EndOfMessage()
}

// newConnectID makes what a daemon must present to be the one that was asked for.
func newConnectID() (string, error) {
	var b [20]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", fmt.Errorf("make a connect id: %w", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// expect makes a connect id, and returns where the connection that presents it arrives. Call
// the function to expect it no more.
func (d *Desk) expect() (id string, arrives <-chan net.Conn, done func(), err error) {
	if id, err = newConnectID(); err != nil {
		return "", nil, nil, err
	}
	conns := make(chan net.Conn, 1)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.expected == nil {
		d.expected = map[string]chan net.Conn{}
	}
	d.expected[id] = conns
	return id, conns, func() { d.forget(id, conns) }, nil
}

// forget closes a connection that arrived after all.
func (d *Desk) forget(id string, conns chan net.Conn) {
	d.mu.Lock()
	_, still := d.expected[id]
	delete(d.expected, id)
	d.mu.Unlock()
	if still {
		return
	}
	select {
	case c := <-conns:
		_ = c.Close()
	default:
	}
}
