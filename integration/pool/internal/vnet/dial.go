package vnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"
)

// A connection on which the guest says nothing for silence, and answers none of the probes that follow, ends: after two and
// a half minutes, because guests stand still for long on a busy machine.
const (
	silence    = 30 * time.Second
	probeEvery = 10 * time.Second
	probes     = 12
)

// A connection is one of the host's to a guest.
type connection struct {
	*gonet.TCPConn
	endpoint tcpip.Endpoint
	// release forgets the connection.
	release func()
}

// Close ends the connection; what was written is still sent.
func (c *connection) Close() error {
	c.release()
	return c.TCPConn.Close()
}

// abort ends the connection at once; a Read or Write that waits fails.
func (c *connection) abort() { c.endpoint.Abort() }

// dial connects. gonet has a function for it, which cannot ask for probes of a silent connection.
func (h *host) dial(ctx context.Context, to netip.AddrPort) (*connection, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var queue waiter.Queue
	endpoint, failure := h.stack.NewEndpoint(tcp.ProtocolNumber, ipv4.ProtocolNumber, &queue)
	if failure != nil {
		return nil, errors.New(failure.String())
	}
	connected := false
	defer func() {
		if !connected {
			endpoint.Close()
		}
	}()
	if failure := probe(endpoint); failure != nil {
		return nil, fmt.Errorf("asking for probes of a silent connection: %s", failure)
	}
	entry, writable := waiter.NewChannelEntry(waiter.WritableEvents | waiter.EventErr | waiter.EventHUp)
	queue.EventRegister(&entry)
	defer queue.EventUnregister(&entry)
	failure = endpoint.Connect(tcpip.FullAddress{NIC: nic, Addr: tcpip.AddrFrom4(to.Addr().As4()), Port: to.Port()})
	if _, started := failure.(*tcpip.ErrConnectStarted); started {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-h.ctx.Done():
			return nil, net.ErrClosed
		case <-writable:
		}
		failure = endpoint.LastError()
	}
	switch failure.(type) {
	case nil:
	case *tcpip.ErrConnectionRefused:
		return nil, syscall.ECONNREFUSED
	case *tcpip.ErrHostUnreachable:
		return nil, syscall.EHOSTUNREACH
	case *tcpip.ErrTimeout:
		return nil, syscall.ETIMEDOUT
	default:
		return nil, errors.New(failure.String())
	}
	connected = true
	return &connection{TCPConn: gonet.NewTCPConn(&queue, endpoint), endpoint: endpoint, release: func() {}}, nil
}

// probe makes an endpoint look whether the other side is still there.
func probe(endpoint tcpip.Endpoint) tcpip.Error {
	endpoint.SocketOptions().SetKeepAlive(true)
	idle, interval := tcpip.KeepaliveIdleOption(silence), tcpip.KeepaliveIntervalOption(probeEvery)
	if err := endpoint.SetSockOpt(&idle); err != nil {
		return err
	}
	if err := endpoint.SetSockOpt(&interval); err != nil {
		return err
	}
	return endpoint.SetSockOptInt(tcpip.KeepaliveCountOption, probes)
}
