package cedar

import (
	"errors"
	"fmt"
)

var (
	// ErrMessageEnd reports a read after the last byte of the current message.
	ErrMessageEnd = errors.New("the message has no more bytes")
	// ErrLeftover reports that the reader ended a message before it had read all
	// of its bytes. The rest of the message is lost; the stream stays usable.
	ErrLeftover = errors.New("the message has bytes that nobody read")
	// ErrNoMessage reports the end of a message that has no value.
	ErrNoMessage = errors.New("no message was begun")
	// ErrDecrypt reports a packet that the session key does not decrypt: the peer
	// has another key or miscounted its packets, or someone else sent it.
	ErrDecrypt = errors.New("packet fails AES-GCM authentication")
	// ErrCounterExhausted reports that a direction of a connection has used
	// all of its 2^32-1 packet numbers.
	ErrCounterExhausted = errors.New("all packet numbers of this connection are used up")
)

// ProtocolError reports that a peer sent bytes that CEDAR does not allow. The
// stream cannot be used any more.
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
