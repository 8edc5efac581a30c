package cedar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
)

const (
	headerSize = 5       // end flag, four bytes of length
	maxPacket  = 1 << 20 // of what the length counts (reli_sock.cpp:rcv_packet)

	// DefaultPacketSize is how many bytes of payload a packet of a Stream
	// carries at most. HTCondor itself sends about 4 KiB and accepts 1 MiB.
	DefaultPacketSize = 64 << 10
	// MaxPacketSize is the greatest payload that every peer accepts.
	MaxPacketSize = maxPacket - ivSize - tagSize

	// flushSize is how many finished bytes are gathered before they are
	// written without being asked for.
	flushSize = 512 << 10
)

// outgoing is the sending half of a stream: finished packets, then the packet
// that is being filled, in one buffer, so that they leave in one write.
type outgoing struct {
	half
	buf     []byte
	open    int // where the packet being filled begins, -1 if there is none
	packet  int // greatest payload
	files   int // greatest payload of contents of files
	gather  bool
	skipEOM bool // the next end of message is swallowed
	err     error
}

// SetPacketSize sets the greatest payload of a packet, in bytes; it is capped
// at MaxPacketSize.
func (s *Stream) SetPacketSize(n int) {
	n = min(max(n, 1), MaxPacketSize)
	s.send.packet, s.send.files = n, n
}

// SetCoalesce chooses whether finished messages wait for each other. With
// true a message is sent when the stream is read from, when Flush is called,
// or when many bytes have gathered; so the caller must flush before it waits
// for the peer by other means than reading from the stream.
func (s *Stream) SetCoalesce(on bool) { s.send.gather = on }

// Pending reports whether values were put that no end of message has followed
// yet.
func (s *Stream) Pending() bool { return s.send.open >= 0 }

// fail makes an error of the sending side stick.
func (s *Stream) fail(err error) {
	if s.send.err == nil {
		s.send.err = err
	}
}

// Err returns the error that stopped the sending side, if one did.
func (s *Stream) Err() error { return s.send.err }

// beginPacket opens a packet with room for n bytes of payload.
func (s *Stream) beginPacket(n int) {
	o := &s.send
	o.open = len(o.buf)
	head := headerSize
	if o.aead != nil && o.counter == 0 {
		head += ivSize
	}
	o.buf = slices.Grow(o.buf, head+n+tagSize)[:o.open+head]
}

// payload returns where the payload of the open packet begins.
func (o *outgoing) payload() int {
	if o.aead != nil && o.counter == 0 {
		return o.open + headerSize + ivSize
	}
	return o.open + headerSize
}

// endPacket finishes the open packet: header, digest or encryption.
func (s *Stream) endPacket(last bool) {
	o := &s.send
	p := o.buf[o.open:]
	size := len(p) - headerSize
	if o.aead != nil {
		size += tagSize
	}
	p[0] = 0
	if last {
		p[0] = 1
	}
	binary.BigEndian.PutUint32(p[1:], uint32(size))
	if o.aead == nil {
		o.note(p)
		o.open = -1
		return
	}
	at := o.payload()
	if o.counter == 0 {
		copy(o.buf[o.open+headerSize:], o.iv[:])
	}
	if err := o.next(); err != nil {
		s.fail(err)
		o.buf, o.open = o.buf[:o.open], -1
		return
	}
	o.buf = slices.Grow(o.buf, tagSize)
	header := o.buf[o.open : o.open+headerSize]
	o.buf = o.aead.Seal(o.buf[:at], o.nonce[:], o.buf[at:], o.associated(header))
	o.open = -1
}

// room returns space for at least one and at most n bytes of payload,
// finishing a full packet first.
func (s *Stream) room(n int) int {
	o := &s.send
	if o.open >= 0 && len(o.buf)-o.payload() >= o.packet {
		s.endPacket(false)
		if len(o.buf) >= flushSize {
			s.flush()
		}
	}
	if o.open < 0 {
		s.beginPacket(min(n, o.packet))
	}
	return min(n, o.packet-(len(o.buf)-o.payload()))
}

// put appends bytes to the current message.
func (s *Stream) put(b []byte) {
	s.send.skipEOM = false
	for len(b) > 0 && s.send.err == nil {
		n := s.room(len(b))
		s.send.buf = append(s.send.buf, b[:n]...)
		b = b[n:]
	}
}

func (s *Stream) putText(b string) {
	s.send.skipEOM = false
	for len(b) > 0 && s.send.err == nil {
		n := s.room(len(b))
		s.send.buf = append(s.send.buf, b[:n]...)
		b = b[n:]
	}
}

// EndMessage ends the message that is being put and sends it. The errors of
// all puts since the last call come out here. Without any value before it, it
// fails with ErrNoMessage, except directly after a command was started and
// after a file was put: then it sends nothing (reli_sock.cpp:
// end_of_message_internal).
func (s *Stream) EndMessage() error {
	o := &s.send
	if o.err != nil {
		return o.err
	}
	if o.skipEOM {
		o.skipEOM = false
		return nil
	}
	if o.open < 0 {
		if s.emptyOK.Swap(false) {
			return nil
		}
		return fmt.Errorf("end message to %s: %w", s.peer, ErrNoMessage)
	}
	s.emptyOK.Store(false)
	s.endPacket(true)
	if !o.gather || len(o.buf) >= flushSize {
		s.flush()
	}
	return o.err
}

// Flush writes everything that was ended. Values behind the last end of
// message stay where they are.
func (s *Stream) Flush() error {
	if s.send.err == nil && len(s.send.buf) > 0 {
		s.flush()
	}
	return s.send.err
}

// flush writes the finished packets.
func (s *Stream) flush() {
	o := &s.send
	end := len(o.buf)
	if o.open >= 0 {
		end = o.open
	}
	if end == 0 || o.err != nil {
		return
	}
	if err := s.write(o.buf[:end]); err != nil {
		s.fail(err)
	}
	rest := copy(o.buf, o.buf[end:])
	o.buf = o.buf[:rest]
	if o.open >= 0 {
		o.open = 0
	}
}

// write sends bytes; a peer that takes some of them in time gets more time.
func (s *Stream) write(b []byte) error {
	for len(b) > 0 {
		if err := s.deadline.armWrite(s.conn); err != nil {
			return fmt.Errorf("send to %s: %w", brief(s.peer), err)
		}
		n, err := s.conn.Write(b)
		b = b[n:]
		if err == nil {
			continue
		}
		if n > 0 && errors.Is(err, os.ErrDeadlineExceeded) {
			s.deadline.rearm()
			continue
		}
		return fmt.Errorf("send to %s: %w", s.peer, s.deadline.cause(err))
	}
	return nil
}
