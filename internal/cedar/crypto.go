package cedar

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
)

const (
	keySize    = 32 // AES-256
	ivSize     = 16 // HTCondor's nonce is 16 bytes, not the customary 12
	tagSize    = 16
	digestSize = sha256.Size

	// transcriptLimit is how many bytes of plaintext per direction take part
	// in the digest of the handshake (reli_sock.cpp:snd_packet).
	transcriptLimit = 1 << 20
)

// deriveKey makes an AES key of a session's secret. The secret is taken as text:
// 64 hex digits are 64 bytes (condor_crypt.cpp:hkdf).
func deriveKey(secret string) ([]byte, error) {
	if secret == "" {
		return nil, errors.New("derive session key: the secret is empty")
	}
	return hkdf.Key(sha256.New, []byte(secret), []byte("htcondor"), "keygen", keySize)
}

// newAEAD makes the cipher of a connection.
func newAEAD(key []byte) (cipher.AEAD, error) {
	if len(key) != keySize {
		return nil, fmt.Errorf("make AES-GCM cipher: the key has %d bytes and must have %d", len(key), keySize)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("make AES-GCM cipher: %w", err)
	}
	return cipher.NewGCMWithNonceSize(block, ivSize)
}

// half is the crypto state of one direction of a connection
// (condor_crypt_aesgcm.cpp).
type half struct {
	aead    cipher.AEAD // nil: plaintext
	iv      [ivSize]byte
	counter uint32 // number of the next packet
	bound   bool   // the handshake was authenticated by a packet already

	transcript hash.Hash // nil: no plaintext packet yet
	length     int       // bytes of plaintext packets so far
	nonce      [ivSize]byte
	first      [2*digestSize + headerSize]byte // associated data of the first packet
}

// note adds a plaintext packet to the transcript.
func (h *half) note(packet []byte) {
	if h.length >= transcriptLimit {
		return
	}
	if h.transcript == nil {
		h.transcript = sha256.New()
	}
	h.transcript.Write(packet)
	h.length += len(packet)
}

// digest returns the digest of this direction's handshake. For a direction
// without a plaintext packet that is 32 zero bytes, not the digest of no bytes.
func (h *half) digest() (d [digestSize]byte) {
	if h.transcript != nil {
		h.transcript.Sum(d[:0])
	}
	return d
}

// forget makes the direction look as if nothing had travelled yet.
func (h *half) forget() { h.transcript, h.length = nil, 0 }

// next sets the nonce of the next packet and counts it: the base IV with its
// first four bytes, as a big-endian number, increased by the packet's number.
func (h *half) next() error {
	if h.counter == ^uint32(0) {
		return ErrCounterExhausted
	}
	h.nonce = h.iv
	binary.BigEndian.PutUint32(h.nonce[:4], binary.BigEndian.Uint32(h.iv[:4])+h.counter)
	h.counter++
	return nil
}

// associated returns the associated data of a packet: its header, preceded,
// for the first packet of a direction, by the digests of the handshake.
func (h *half) associated(header []byte) []byte {
	if h.bound {
		return header
	}
	h.bound = true
	copy(h.first[2*digestSize:], header)
	return h.first[:]
}

// setKey turns encryption on for both directions; it cannot be turned off. Call
// it between messages, at the point of the handshake where the peer does the
// same.
func (s *Stream) setKey(key []byte) error {
	if s.Encrypted() {
		return errors.New("set session key: the stream has a key already")
	}
	if err := s.Flush(); err != nil {
		return err
	}
	if s.send.open >= 0 || s.recv.inMessage {
		return errors.New("set session key: a message is not ended yet")
	}
	aead, err := newAEAD(key)
	if err != nil {
		return err
	}
	s.send.aead, s.recv.aead, s.key = aead, aead, func() []byte { return key }
	if _, err := rand.Read(s.send.iv[:]); err != nil {
		return fmt.Errorf("choose the base IV: %w", err)
	}
	sent, received := s.send.digest(), s.recv.digest()
	copy(s.send.first[:], sent[:])
	copy(s.send.first[digestSize:], received[:])
	copy(s.recv.first[:], received[:])
	copy(s.recv.first[digestSize:], sent[:])
	s.send.forget()
	s.recv.forget()
	return nil
}

// resetTranscript forgets the handshake so far. It is called after a message
// that the final peer never sees, SHARED_PORT_CONNECT (reli_sock.cpp:
// resetHeaderMD).
func (s *Stream) resetTranscript() {
	s.send.forget()
	s.recv.forget()
}
