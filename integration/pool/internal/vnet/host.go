package vnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/adapters/gonet"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/link/ethernet"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"
)

// hostMAC is locally administered (IEEE 802), as those of the guests should be.
var hostMAC = mac{0x02, 0x00, 0x00, 0x00, 0x00, 0x01}

// nic is the number of a stack's only network device.
const nic tcpip.NICID = 1

// A connection on which the guest says nothing for silence, and answers none of the probes that follow, ends: after two and
// a half minutes, because guests stand still for long on a busy machine.
const (
	silence    = 30 * time.Second
	probeEvery = 10 * time.Second
	probes     = 12
)

// The host asks for a guest's hardware address for three seconds, so often that it notices soon when a guest has booted. A
// guest that was there before has half a minute to answer.
const (
	askEvery  = 200 * time.Millisecond
	asks      = 15
	asksAgain = 150
)

// host is a TCP stack of this process on the network.
type host struct {
	subnet  netip.Prefix
	address netip.Addr
	stack   *stack.Stack
	link    *channel.Endpoint
	// ctx ends when the host is closed.
	ctx    context.Context
	cancel context.CancelFunc
}

func newHost(address netip.Prefix, own mac, mtu int) (*host, error) {
	h := &host{subnet: address.Masked(), address: address.Addr(), link: channel.New(queued, uint32(mtu), tcpip.LinkAddress(own[:]))}
	var err error
	if h.stack, err = newStack(ethernet.New(h.link), address); err != nil {
		return nil, err
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h, nil
}

// newStack makes a TCP stack whose only device has the address.
func newStack(link stack.LinkEndpoint, address netip.Prefix) (*stack.Stack, error) {
	s := stack.New(stack.Options{
		NetworkProtocols:   []stack.NetworkProtocolFactory{ipv4.NewProtocol, arp.NewProtocol},
		TransportProtocols: []stack.TransportProtocolFactory{tcp.NewProtocol, icmp.NewProtocol4},
		NUDConfigs:         stack.NUDConfigurations{RetransmitTimer: askEvery, MaxMulticastProbes: asks, MaxUnicastProbes: asksAgain},
	})
	fail := func(what string, err tcpip.Error) (*stack.Stack, error) {
		s.Destroy()
		return nil, fmt.Errorf("%s: %s", what, err)
	}
	sack := tcpip.TCPSACKEnabled(true)
	if err := s.SetTransportProtocolOption(tcp.ProtocolNumber, &sack); err != nil {
		return fail("switching selective acknowledgements on", err)
	}
	if err := s.CreateNIC(nic, link); err != nil {
		return fail("making a network device", err)
	}
	prefix := tcpip.AddressWithPrefix{Address: tcpip.AddrFrom4(address.Addr().As4()), PrefixLen: address.Bits()}
	if err := s.AddProtocolAddress(nic, tcpip.ProtocolAddress{Protocol: header.IPv4ProtocolNumber, AddressWithPrefix: prefix}, stack.AddressProperties{}); err != nil {
		return fail("giving it the address "+address.String(), err)
	}
	s.SetRouteTable([]tcpip.Route{{Destination: prefix.Subnet(), NIC: nic}})
	return s, nil
}

// receive takes a frame from the switch.
func (h *host) receive(frame []byte) {
	packet := stack.NewPacketBuffer(stack.PacketBufferOptions{Payload: buffer.MakeWithData(frame)})
	defer packet.DecRef()
	h.link.InjectInbound(0, packet)
}

// send gives the switch what the stack sends, until the host is closed.
func (h *host) send(forward func(frame []byte)) {
	for {
		packet := h.link.ReadContext(h.ctx)
		if packet == nil {
			return
		}
		view := packet.ToView()
		// The view's memory is used again once it is released; receivers keep the frame longer.
		frame := append([]byte(nil), view.AsSlice()...)
		view.Release()
		packet.DecRef()
		forward(frame)
	}
}

func (h *host) close() {
	h.cancel()
	h.stack.Destroy()
}

// dial connects. gonet has a function for it, which cannot ask for probes of a silent connection.
func (h *host) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
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
	return gonet.NewTCPConn(&queue, endpoint), nil
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
