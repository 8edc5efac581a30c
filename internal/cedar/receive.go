package cedar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

const (
	firstBuffer = 4 << 10   // receive buffer of a stream that says little
	bulkBuffer  = 512 << 10 // and of one that delivers files

	// drainLimit is how much of a message may be thrown away to reach its
	// end before the peer counts as mad.
	drainLimit = 64 << 20
)

// incoming is the receiving half of a stream: a window of raw bytes, and the
// packet of it that is being taken apart, decrypted in place.
type incoming struct {
	half
	buf       []byte // raw bytes; r..w are unread
	r, w      int
	sealed    []byte // payload of the current packet, not decrypted yet
	plain     []byte // decrypted and unread
	inMessage bool   // a message was begun and not ended
	last      bool   // the current packet is the message's last
	skipEOM   bool
	limit     int // bytes that the current message may have, 0: no limit
	size      int // bytes of packets of the current message so far
	err       error
	wake      wakeup
}

// SetMessageLimit bounds the size, in bytes, of messages that the peer may
// send; 0 means no bound. It is meant for peers that have not proved anything
// yet.
func (s *Stream) SetMessageLimit(n int) { s.recv.limit = n }

// Wait returns when at least one byte of the peer is there to be read, or
// with an error if the connection ended (it wraps io.EOF), the timeout passed
// or a Cancel struck. It takes nothing out of the stream, and a timeout or an
// interruption does no harm to it.
func (s *Stream) Wait() error {
	in := &s.recv
	if in.err != nil {
		return in.err
	}
	if len(in.plain) > 0 || len(in.sealed) > 0 || in.w > in.r {
		return nil
	}
	if err := s.flushForRead(); err != nil {
		return err
	}
	return s.readMore()
}

// Buffered reports whether bytes were received that nobody has read yet.
func (s *Stream) Buffered() bool {
	return len(s.recv.plain) > 0 || len(s.recv.sealed) > 0 || s.recv.w > s.recv.r
}

func (s *Stream) flushForRead() error {
	if !s.send.gather {
		return nil
	}
	return s.Flush()
}

// readMore reads once from the connection into the window.
func (s *Stream) readMore() error {
	in := &s.recv
	if in.r == in.w {
		in.r, in.w = 0, 0
	}
	if in.buf == nil {
		in.buf = make([]byte, firstBuffer)
	}
	var n int
	var err error
	if in.wake.patient && in.wake.due < wakeSize {
		n, err = s.readPatiently(in.buf[in.w:])
	}
	if n == 0 && err == nil {
		n, err = s.read(in.buf[in.w:])
	}
	in.w += n
	in.wake.due -= n
	if n > 0 {
		if in.w == len(in.buf) && len(in.buf) < bulkBuffer {
			// The peer has more to say than fits: make the window larger,
			// in proportion to what has really arrived.
			in.buf = append(in.buf, make([]byte, len(in.buf))...)
		}
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return fmt.Errorf("receive from %s: %w", brief(s.peer), s.deadline.cause(err))
}

// read reads once from the connection, and waits for as long as the stream may.
func (s *Stream) read(b []byte) (int, error) {
	if err := s.deadline.armRead(s.conn); err != nil {
		return 0, err
	}
	s.setWakeup()
	n, err := s.conn.Read(b)
	if n == 0 && err != nil {
		n = s.late(err)
	}
	return n, err
}

// need makes n unread bytes available in the window. io.EOF comes out only
// if not a single one arrived.
func (s *Stream) need(n int) error {
	in := &s.recv
	for in.w-in.r < n {
		if in.r+n > len(in.buf) && in.r > 0 {
			in.w = copy(in.buf, in.buf[in.r:in.w])
			in.r = 0
		}
		if in.w == len(in.buf) && len(in.buf) > 0 {
			in.buf = append(in.buf, make([]byte, min(len(in.buf), n-len(in.buf)))...)
		}
		if err := s.readMore(); err != nil {
			if errors.Is(err, io.EOF) && in.w > in.r {
				return fmt.Errorf("receive from %s: connection ended inside a packet: %w", brief(s.peer), io.ErrUnexpectedEOF)
			}
			return err
		}
	}
	return nil
}

// nextPacket takes the next packet's frame. Its payload is in in.sealed
// afterwards, or in in.plain if the stream is not encrypted.
func (s *Stream) nextPacket() error {
	in := &s.recv
	if in.err != nil {
		return in.err
	}
	if in.inMessage && in.last {
		return fmt.Errorf("receive from %s: %w", brief(s.peer), ErrMessageEnd)
	}
	if err := s.framePacket(); err != nil {
		if in.inMessage && errors.Is(err, io.EOF) {
			err = fmt.Errorf("receive from %s: connection ended inside a message: %w", brief(s.peer), io.ErrUnexpectedEOF)
		}
		if in.inMessage || !s.interrupted(err) {
			in.err = err
		}
		return err
	}
	return nil
}

// interrupted reports whether an error only means that a wait was cut short.
func (s *Stream) interrupted(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || s.deadline.struck()
}

func (s *Stream) framePacket() error {
	in := &s.recv
	if err := s.flushForRead(); err != nil {
		return err
	}
	if err := s.need(headerSize); err != nil {
		return err
	}
	h := in.buf[in.r:]
	end, length := int8(h[0]), binary.BigEndian.Uint32(h[1:])
	switch {
	case end < 0 || end > 10:
		return s.violation("packet header begins with %#02x; is it not CEDAR?", h[0])
	case length == 0:
		return s.violation("empty packet")
	case length > maxPacket:
		return s.violation("packet of %d bytes, at most %d are allowed", length, maxPacket)
	}
	n := int(length)
	least := 1
	if in.aead != nil {
		least = tagSize
		if in.counter == 0 {
			least += ivSize
		}
	}
	if n < least {
		return s.violation("encrypted packet of %d bytes cannot hold its tag", n)
	}
	if !in.inMessage {
		in.size = 0
	}
	in.size += n
	if in.limit > 0 && in.size > in.limit {
		return s.violation("message of more than %d bytes", in.limit)
	}
	if err := s.need(headerSize + n); err != nil {
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("receive from %s: connection ended inside a packet: %w", brief(s.peer), io.ErrUnexpectedEOF)
		}
		return err
	}
	packet := in.buf[in.r : in.r+headerSize+n]
	in.r += len(packet)
	in.inMessage, in.last = true, end != 0
	if in.aead == nil {
		in.note(packet)
		in.plain = packet[headerSize:]
		return nil
	}
	in.sealed = packet
	return nil
}

// unseal decrypts the current packet into dst, or in place if dst is nil.
func (s *Stream) unseal(dst []byte) ([]byte, error) {
	in := &s.recv
	header, body := in.sealed[:headerSize], in.sealed[headerSize:]
	in.sealed = nil
	if in.counter == 0 {
		copy(in.iv[:], body)
		body = body[ivSize:]
	}
	err := in.next()
	if err == nil {
		if dst == nil {
			dst = body[:0]
		}
		dst, err = in.aead.Open(dst, in.nonce[:], body, in.associated(header))
		if err != nil {
			err = ErrDecrypt
		}
	}
	if err != nil {
		in.err = fmt.Errorf("receive from %s: packet %d: %w", s.peer, in.counter-1, err)
		return nil, in.err
	}
	return dst, nil
}

// sealedSize returns the size of the current packet's plaintext.
func (in *incoming) sealedSize() int {
	n := len(in.sealed) - headerSize - tagSize
	if in.counter == 0 {
		n -= ivSize
	}
	return n
}

// prove waits for the first packet of the next message, and succeeds if that was
// made with the stream's key. What is in it is still to be read.
func (s *Stream) prove() error {
	in := &s.recv
	if in.aead == nil {
		return errors.New("the stream has no key")
	}
	if err := s.nextPacket(); err != nil {
		return err
	}
	p, err := s.unseal(nil)
	if err != nil {
		return err
	}
	in.plain = p
	s.emptyOK.Store(false)
	return nil
}

// more makes in.plain hold at least one byte of the current message.
func (s *Stream) more() error {
	in := &s.recv
	for len(in.plain) == 0 {
		if in.sealed == nil {
			if err := s.nextPacket(); err != nil {
				return err
			}
		}
		if in.sealed != nil {
			p, err := s.unseal(nil)
			if err != nil {
				return err
			}
			in.plain = p
		}
	}
	return nil
}

// readFull fills p from the current message. Encrypted packets that fit are
// decrypted straight into it.
func (s *Stream) readFull(p []byte) error {
	in := &s.recv
	in.skipEOM = false
	for len(p) > 0 {
		if len(in.plain) == 0 && in.sealed == nil {
			if err := s.nextPacket(); err != nil {
				return err
			}
		}
		if in.sealed != nil {
			if n := in.sealedSize(); n <= len(p) {
				if _, err := s.unseal(p[:0:n]); err != nil {
					return err
				}
				p = p[n:]
				continue
			}
			if err := s.more(); err != nil {
				return err
			}
		}
		n := copy(p, in.plain)
		in.plain, p = in.plain[n:], p[n:]
	}
	return nil
}

// EndOfMessage ends the message that was read. Bytes of it that nobody read
// are thrown away and reported as ErrLeftover. Without any value before it,
// it fails with ErrNoMessage, except directly after a command was accepted
// and after a file was received: then nothing is read for it.
func (s *Stream) EndOfMessage() error {
	in := &s.recv
	if in.err != nil {
		return in.err
	}
	if in.skipEOM {
		in.skipEOM = false
		return nil
	}
	if !in.inMessage {
		if s.emptyOK.Swap(false) {
			return nil
		}
		return fmt.Errorf("end message from %s: %w", s.peer, ErrNoMessage)
	}
	s.emptyOK.Store(false)
	left := 0
	for {
		left += len(in.plain)
		in.plain = nil
		if in.sealed != nil {
			p, err := s.unseal(nil)
			if err != nil {
				return err
			}
			left += len(p)
		}
		if in.last {
			break
		}
		if left > drainLimit {
			in.err = s.violation("more than %d bytes behind the end of an expected message", drainLimit)
			return in.err
		}
		if err := s.nextPacket(); err != nil {
			return err
		}
	}
	in.inMessage = false
	if left > 0 {
		return fmt.Errorf("end message from %s: %d bytes: %w", s.peer, left, ErrLeftover)
	}
	return nil
}
