package vnet

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"gvisor.dev/gvisor/pkg/buffer"
	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/header"
	"gvisor.dev/gvisor/pkg/tcpip/link/channel"
	"gvisor.dev/gvisor/pkg/tcpip/link/ethernet"
	"gvisor.dev/gvisor/pkg/tcpip/network/arp"
	"gvisor.dev/gvisor/pkg/tcpip/network/ipv4"
	"gvisor.dev/gvisor/pkg/tcpip/stack"
	"gvisor.dev/gvisor/pkg/tcpip/transport/icmp"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
)

// hostMAC is locally administered (IEEE 802), as those of the guests should be.
var hostMAC = mac{0x02, 0x00, 0x00, 0x00, 0x00, 0x01}

// nic is the number of a stack's only network device.
const nic tcpip.NICID = 1

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

// neighbour is the hardware address of a guest that the host has talked to.
func (h *host) neighbour(address netip.Addr) (mac, bool) {
	// An error means that the stack is closed.
	known, _ := h.stack.Neighbors(nic, ipv4.ProtocolNumber)
	for _, k := range known {
		if k.Addr == tcpip.AddrFrom4(address.As4()) && len(k.LinkAddr) == macSize {
			return mac([]byte(k.LinkAddr)), true
		}
	}
	return mac{}, false
}

// forget makes the host ask anew for what has this hardware address: a guest that boots again answers much later than
// one that is there.
func (h *host) forget(guest mac) {
	known, _ := h.stack.Neighbors(nic, ipv4.ProtocolNumber)
	for _, k := range known {
		if k.LinkAddr == tcpip.LinkAddress(guest[:]) {
			_ = h.stack.RemoveNeighbor(nic, ipv4.ProtocolNumber, k.Addr)
		}
	}
}

func (h *host) close() {
	h.cancel()
	h.stack.Destroy()
}
