package cedar

import (
	"errors"
	"fmt"
)

var (
	// ErrMessageEnd reports that a value was asked for after the last byte of
	// the current message.
	ErrMessageEnd = errors.New("the message has no more bytes")
	// ErrLeftover reports that a message was ended by the reader while bytes
	// of it were still unread. The message is gone; the stream stays usable.
	ErrLeftover = errors.New("the message has bytes that nobody read")
	// ErrNoMessage reports an end of message without any value before it.
	ErrNoMessage = errors.New("no message was begun")
	// ErrDecrypt reports a packet that the session key does not open: the
	// peer has another key, lost count of its packets, or is not the peer.
	ErrDecrypt = errors.New("packet fails AES-GCM authentication")
	// ErrCounterExhausted reports that a direction of a connection has used
	// all of its 2^32-1 packet numbers.
	ErrCounterExhausted = errors.New("all packet numbers of this connection are used up")
)

// ProtocolError says that a peer sent bytes that CEDAR does not allow. The
// stream is of no further use.
type ProtocolError struct {
	Peer   string // who sent it, for a log
	Detail string // what was wrong with it
}

func (e *ProtocolError) Error() string {
	if e.Peer == "" {
		return "protocol violation: " + e.Detail
	}
	return "protocol violation by " + e.Peer + ": " + e.Detail
}

func (s *Stream) violation(format string, args ...any) error {
	return &ProtocolError{Peer: s.peer, Detail: fmt.Sprintf(format, args...)}
}
