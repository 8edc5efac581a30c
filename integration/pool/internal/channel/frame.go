// Package channel runs commands in a guest over one connection each: standard streams, signals and the exit code pass
// through.
//
// A connection carries frames: a type (one byte), a length (four bytes, big endian), and that many bytes. The client
// sends one frameRequest, then frameStdin, frameStdinEnd and frameSignal. The server sends frameStdout and frameStderr,
// and ends with a frameExit or a frameFailure. Whoever receives a frame of a stream returns a frameCredit once its bytes
// are passed on; no more than window frames of a stream are on the way. So a stream that nobody reads does not hold up
// the signals, the other streams, or the news that the other side is gone.
package channel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

type frameType byte

const (
	frameRequest  frameType = 'R' // the command, a request in JSON
	frameStdin    frameType = 'I'
	frameStdinEnd frameType = 'i' // empty: standard input ends here
	frameSignal   frameType = 'S' // one byte: the signal's number
	frameStdout   frameType = 'O'
	frameStderr   frameType = 'E'
	frameCredit   frameType = 'C' // one byte: the type of the stream's frames
	frameExit     frameType = 'X' // two bytes: exit code, and the signal that ended the command or 0
	frameFailure  frameType = 'F' // text: why there is no exit code
)

const (
	headerSize = 5
	chunkSize  = 32 << 10 // bytes of a stream in one frame, at most
	window     = 16       // frames of a stream on the way, at most
	// requestSize is what a command with its environment may take, in bytes. Linux takes 2 MiB (a quarter of the stack's
	// limit, execve(2)), and JSON's base64 adds a third.
	requestSize = 4 << 20
	failureSize = 4 << 10
)

// size is how many bytes a frame of the type has, at least and at most; false if there is no such type.
func (t frameType) size() (least, most uint32, ok bool) {
	switch t {
	case frameRequest:
		return 0, requestSize, true
	case frameStdin, frameStdout, frameStderr:
		return 1, chunkSize, true
	case frameStdinEnd:
		return 0, 0, true
	case frameSignal, frameCredit:
		return 1, 1, true
	case frameExit:
		return 2, 2, true
	case frameFailure:
		return 0, failureSize, true
	}
	return 0, 0, false
}

type frame struct {
	kind frameType
	data []byte
}

// readFrame returns io.EOF at the end between two frames, and io.ErrUnexpectedEOF inside of one.
func readFrame(r io.Reader) (frame, error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return frame{}, err
	}
	kind, length := frameType(header[0]), binary.BigEndian.Uint32(header[1:])
	least, most, ok := kind.size()
	if !ok {
		return frame{}, fmt.Errorf("a frame of the unknown type %q", byte(kind))
	}
	if length < least || length > most {
		return frame{}, fmt.Errorf("a frame of type %q has %d bytes, not %d to %d", byte(kind), length, least, most)
	}
	data := make([]byte, length)
	if _, err := io.ReadFull(r, data); errors.Is(err, io.EOF) {
		return frame{}, io.ErrUnexpectedEOF
	} else if err != nil {
		return frame{}, err
	}
	return frame{kind, data}, nil
}

// A sender writes whole frames, from any goroutine.
type sender struct {
	mu   sync.Mutex
	conn net.Conn
}

func (s *sender) send(kind frameType, data ...byte) error {
	if _, most, ok := kind.size(); !ok || uint64(len(data)) > uint64(most) {
		return fmt.Errorf("a frame of type %q cannot have %d bytes, at most %d", byte(kind), len(data), most)
	}
	text := make([]byte, headerSize, headerSize+len(data))
	text[0] = byte(kind)
	binary.BigEndian.PutUint32(text[1:], uint32(len(data)))
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.conn.Write(append(text, data...))
	return err
}

// credits counts the frames of one stream that may still be sent.
type credits chan struct{}

func newCredits() credits {
	c := make(credits, window)
	for range window {
		c <- struct{}{}
	}
	return c
}

// add is called for each frameCredit. It fails for a frame that was never sent.
func (c credits) add() error {
	select {
	case c <- struct{}{}:
		return nil
	default:
		return errors.New("a credit for a frame that was not sent")
	}
}

// A queue holds the frames of one stream that were received and not yet passed on.
type queue struct {
	frames chan []byte
	ended  bool
}

func newQueue() *queue { return &queue{frames: make(chan []byte, window)} }

// add does not wait: a peer that keeps to its window always finds room.
func (q *queue) add(data []byte) error {
	if q.ended {
		return errors.New("bytes after the end of their stream")
	}
	select {
	case q.frames <- data:
		return nil
	default:
		return fmt.Errorf("more than %d frames of a stream are on the way", window)
	}
}

func (q *queue) end() {
	if !q.ended {
		q.ended = true
		close(q.frames)
	}
}
